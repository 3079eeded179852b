"""From indices to a batch."""


def make_fetcher(dataset, kind, collate, drop_last):
    """A function of a list of indices (of one index without batches) that gives the collated samples; kind is 'map' or 'iterable'."""
    if kind == "map":

        def fetch(indices):
            if isinstance(indices, list):
                many = getattr(dataset, "__getitems__", None)
                samples = many(indices) if many is not None else [dataset[i] for i in indices]
                return collate(samples)
            return collate(dataset[indices])

        return fetch
    samples = iter(dataset)

    def take(indices):
        if not isinstance(indices, list):
            return collate(next(samples))
        batch = []
        for _ in indices:
            try:
                batch.append(next(samples))
            except StopIteration:
                break
        if not batch or (drop_last and len(batch) < len(indices)):
            raise StopIteration
        return collate(batch)

    return take
