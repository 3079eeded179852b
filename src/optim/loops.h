/* The loops of the optimizers with adaptive rates, for one element type T: methods.c includes this file for float and
 * for double.
 *
 * Every loop gets at[0] = parameters p, at[1] = gradients g, then the states in the order of the step's arguments.
 * NAMED(x) makes a name for the type, SQRT and ABS are its functions. Numbers are computed in double and rounded to T
 * once, as PyTorch rounds its scalars. */

/* The direction of one element: the gradient, turned round to maximize, plus the decay. Without decay p must not come
 * in: it may be infinite. */
static inline T NAMED(direction)(T g, T p, T sign, T decay) {
    return decay != 0 ? sign * g + decay * p : sign * g;
}

/* s += d^2; p -= rate d / (sqrt(s) + eps) */
static void NAMED(adagrad)(void *const *at, int64_t n, int64_t index, const void *context) {
    const step *c = context;
    const msa_adagrad_options *o = c->options;
    T *restrict p = at[0], *restrict sum = at[2];
    const T *restrict g = at[1];
    const T rate = (T)(o->lr / (1 + (c->numbers[index] - 1) * o->lr_decay)), eps = (T)o->eps,
            decay = (T)o->weight_decay;
    const T sign = o->maximize ? -1 : 1;
    for (int64_t i = 0; i < n; i++) {
        T d = NAMED(direction)(g[i], p[i], sign, decay);
        sum[i] += d * d;
        p[i] -= rate * d / (SQRT(sum[i]) + eps);
    }
}

/* v = alpha v + (1 - alpha) d^2; p -= lr d / (sqrt(v) + eps). Centred, the square of the mean gradient is taken off v;
 * with momentum, the quotients are summed up and the sum is subtracted. */
static void NAMED(rmsprop)(void *const *at, int64_t n, int64_t index, const void *context) {
    const msa_rmsprop_options *o = ((const step *)context)->options;
    T *restrict p = at[0], *restrict v = at[2], *restrict mean = at[3], *restrict b = at[4];
    const T *restrict g = at[1];
    const T lr = (T)o->lr, alpha = (T)o->alpha, rest = (T)(1 - o->alpha), eps = (T)o->eps, decay = (T)o->weight_decay;
    const T momentum = (T)o->momentum, sign = o->maximize ? -1 : 1;
    for (int64_t i = 0; i < n; i++) {
        T d = NAMED(direction)(g[i], p[i], sign, decay);
        T square = alpha * v[i] + rest * d * d;
        v[i] = square;
        if (mean) {
            T m = alpha * mean[i] + rest * d;
            mean[i] = m;
            square -= m * m;
        }
        T root = SQRT(square) + eps;
        if (b) {
            T sum = momentum * b[i] + d / root;
            b[i] = sum;
            p[i] -= lr * sum;
        } else {
            p[i] -= lr * d / root;
        }
    }
}

/* v = rho v + (1 - rho) d^2; delta = sqrt(a + eps) / sqrt(v + eps) d; a = rho a + (1 - rho) delta^2; p -= lr delta */
static void NAMED(adadelta)(void *const *at, int64_t n, int64_t index, const void *context) {
    const msa_adadelta_options *o = ((const step *)context)->options;
    T *restrict p = at[0], *restrict v = at[2], *restrict a = at[3];
    const T *restrict g = at[1];
    const T lr = (T)o->lr, rho = (T)o->rho, rest = (T)(1 - o->rho), eps = (T)o->eps, decay = (T)o->weight_decay;
    const T sign = o->maximize ? -1 : 1;
    for (int64_t i = 0; i < n; i++) {
        T d = NAMED(direction)(g[i], p[i], sign, decay);
        T square = rho * v[i] + rest * d * d;
        T delta = SQRT(a[i] + eps) / SQRT(square + eps) * d;
        v[i] = square;
        a[i] = rho * a[i] + rest * delta * delta;
        p[i] -= lr * delta;
    }
}

/* m = beta1 m + (1 - beta1) d; u = max(beta2 u, |d| + eps); p -= lr / (1 - beta1^t) m / u */
static void NAMED(adamax)(void *const *at, int64_t n, int64_t index, const void *context) {
    const step *c = context;
    const msa_adamax_options *o = c->options;
    T *restrict p = at[0], *restrict m = at[2], *restrict u = at[3];
    const T *restrict g = at[1];
    const T rate = (T)(o->lr / (1 - pow(o->beta1, c->numbers[index]))), beta1 = (T)o->beta1, rest1 = (T)(1 - o->beta1),
            beta2 = (T)o->beta2;
    const T eps = (T)o->eps, decay = (T)o->weight_decay, sign = o->maximize ? -1 : 1;
    for (int64_t i = 0; i < n; i++) {
        T d = NAMED(direction)(g[i], p[i], sign, decay);
        T mean = beta1 * m[i] + rest1 * d, old = beta2 * u[i], now = ABS(d) + eps;
        T most = now > old || now != now ? now : old; /* not a number wins, as in amax */
        m[i] = mean;
        u[i] = most;
        p[i] -= rate * mean / most;
    }
}

/* Adam with Nesterov's momentum, which grows from step to step: see msa_nadam_step. */
static void NAMED(nadam)(void *const *at, int64_t n, int64_t index, const void *context) {
    const step *c = context;
    const msa_nadam_options *o = c->options;
    const double t = c->numbers[2 * index], product = c->numbers[2 * index + 1];
    const double mu = nadam_momentum(o, t), mu_next = nadam_momentum(o, t + 1);
    T *restrict p = at[0], *restrict m = at[2], *restrict v = at[3];
    const T *restrict g = at[1];
    /* `product` has mu in it already; that PyTorch 1.13 takes it in again is what its users have trained with */
    const T now = (T)(o->lr * (1 - mu) / (1 - product)), next = (T)(o->lr * mu_next / (1 - product * mu * mu_next));
    const T correction = (T)(1 - pow(o->beta2, t)), eps = (T)o->eps, decay = (T)o->weight_decay;
    const T beta1 = (T)o->beta1, rest1 = (T)(1 - o->beta1), beta2 = (T)o->beta2, rest2 = (T)(1 - o->beta2);
    for (int64_t i = 0; i < n; i++) {
        T d = NAMED(direction)(g[i], p[i], 1, decay);
        T mean = beta1 * m[i] + rest1 * d, square = beta2 * v[i] + rest2 * d * d;
        T root = SQRT(square / correction) + eps;
        m[i] = mean;
        v[i] = square;
        p[i] = p[i] - now * d / root - next * mean / root;
    }
}

/* Adam whose rate is rectified once the variance of the squares is tractable, plain momentum before: `rate` is then the
 * whole factor. */
static void NAMED(radam)(void *const *at, int64_t n, int64_t index, const void *context) {
    const step *c = context;
    const msa_radam_options *o = c->options;
    const double t = c->numbers[index], correction1 = 1 - pow(o->beta1, t), power2 = pow(o->beta2, t);
    const double most = 2 / (1 - o->beta2) - 1, length = most - 2 * t * power2 / (1 - power2);
    const bool tractable = length > 5;
    const double rectified =
        sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) * sqrt(1 - power2);
    T *restrict p = at[0], *restrict m = at[2], *restrict v = at[3];
    const T *restrict g = at[1];
    const T rate = (T)(o->lr / correction1 * (tractable ? rectified : 1)), eps = (T)o->eps, decay = (T)o->weight_decay;
    const T beta1 = (T)o->beta1, rest1 = (T)(1 - o->beta1), beta2 = (T)o->beta2, rest2 = (T)(1 - o->beta2);
    for (int64_t i = 0; i < n; i++) {
        T d = NAMED(direction)(g[i], p[i], 1, decay);
        T mean = beta1 * m[i] + rest1 * d, square = beta2 * v[i] + rest2 * d * d;
        m[i] = mean;
        v[i] = square;
        p[i] -= tractable ? rate * mean / (SQRT(square) + eps) : rate * mean;
    }
}

/* Each element has a step size s of its own: it grows while the gradient keeps its sign and shrinks when it changes,
 * and then the element stays where it is for one step. */
static void NAMED(rprop)(void *const *at, int64_t n, int64_t index, const void *context) {
    const msa_rprop_options *o = ((const step *)context)->options;
    T *restrict p = at[0], *restrict before = at[2], *restrict s = at[3];
    const T *restrict g = at[1];
    const T shrink = (T)o->eta_minus, grow = (T)o->eta_plus, least = (T)o->step_min, most = (T)o->step_max,
            sign = o->maximize ? -1 : 1;
    for (int64_t i = 0; i < n; i++) {
        T d = sign * g[i], agree = d * before[i];
        T size = s[i] * (agree > 0 ? grow : agree < 0 ? shrink : 1);
        size = size < least ? least : size > most ? most : size;
        d = agree < 0 ? 0 : d;
        s[i] = size;
        before[i] = d;
        p[i] -= (T)((d > 0) - (d < 0)) * size;
    }
}

/* p = (1 - lambd eta) p - eta d; the mean a of the iterates moves to p by the share mu. */
static void NAMED(asgd)(void *const *at, int64_t n, int64_t index, const void *context) {
    const step *c = context;
    const msa_asgd_options *o = c->options;
    const double eta = c->numbers[2 * index], share = c->numbers[2 * index + 1];
    T *restrict p = at[0], *restrict a = at[2];
    const T *restrict g = at[1];
    const T rate = (T)eta, keep = (T)(1 - o->lambd * eta), mu = (T)share, decay = (T)o->weight_decay,
            sign = o->maximize ? -1 : 1;
    const bool whole = share == 1;
    for (int64_t i = 0; i < n; i++) {
        T d = NAMED(direction)(g[i], p[i], sign, decay);
        T now = keep * p[i] - rate * d;
        p[i] = now;
        a[i] = whole ? now : a[i] + (now - a[i]) * mu;
    }
}

#undef T
#undef NAMED
#undef SQRT
#undef ABS
