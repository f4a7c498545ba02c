# An inhomogeneous Poisson pattern fitted by ppm(method = "logi"); writes rows.csv (data and dummy points with their
# covariates) and fits.csv (coefficients, standard errors, the dummy intensity).
#   Rscript tests/oracles/spatstat/fits.R            (spatstat.model)
suppressMessages({library(spatstat.geom); library(spatstat.random); library(spatstat.model)})
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)))
set.seed(1)
W <- owin(c(0, 10), c(0, 5))
elev <- as.im(function(x, y) sin(x / 2) + 0.3 * y, W)
grad <- as.im(function(x, y) abs(cos(x / 2) * 0.5) + 0.1 * (x - 5)^2 / 5, W)
pattern <- rpoispp(eval.im(exp(1.0 + 0.8 * elev - 0.6 * grad)))
Q <- quadscheme.logi(pattern, dummytype = "binomial", nd = 25)
fit <- ppm(Q ~ elev + grad, data = list(elev = elev, grad = grad), method = "logi")
data <- fit$internal$glmdata
X <- model.matrix(fit)
z <- as.integer(is.data(quad.ppm(fit)))
offset <- unique(signif(data$.logi.B, 14))
rows <- data.frame(z = z, elev = X[, 2], grad = X[, 3])
rows[-1] <- lapply(rows[-1], function(x) sprintf("%.15g", x))
write.csv(rows, file.path(here, "rows.csv"), row.names = FALSE, quote = FALSE)
V <- vcov(fit)
# ppm's own iterations stop at 1e-8: once more on its rows, to rounding
again <- glm(z ~ elev + grad + offset(-log(data$.logi.B)), binomial,
             data.frame(z = z, elev = X[, 2], grad = X[, 3]), control = glm.control(epsilon = 1e-14, maxit = 100))
stopifnot(max(abs(coef(again) - coef(fit))) < 1e-5)
write.csv(data.frame(term = names(coef(fit)), ppm = sprintf("%.15g", coef(fit)), estimate = sprintf("%.15g", coef(again)),
                     se = sprintf("%.15g", sqrt(diag(V))), rho = sprintf("%.15g", offset), area = area(W)),
          file.path(here, "fits.csv"), row.names = FALSE, quote = FALSE)
print(fit)
