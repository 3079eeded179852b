"""Times that process groups and stores wait."""

from datetime import timedelta

default_pg_timeout = timedelta(minutes=30)
default_store_timeout = timedelta(minutes=5)
