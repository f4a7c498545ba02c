# Derivatives, differences of smooths and predictions without a term, from mgcv's lpmatrix. Run after fits.R: Rscript posterior.R
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
rows <- read.csv("fits_rows.csv", stringsAsFactors = TRUE)
at <- seq(.05, .95, by = .1)
band <- function(X, b) list(estimate = arr(drop(X %*% coef(b))), se = arr(sqrt(rowSums((X %*% vcov(b)) * X))))
b <- gam(y ~ s(x1), data = rows, method = "REML", control = control)
lp <- function(b, x) predict(b, data.frame(x1 = x), type = "lpmatrix")
h <- 1e-5; first <- (lp(b, at + h) - lp(b, at - h)) / (2 * h)
h <- 1e-3; second <- (lp(b, at + h) - 2 * lp(b, at) + lp(b, at - h)) / h^2
f <- gam(count ~ g + s(x1, by = g, k = 6), poisson(), rows, method = "REML", control = control)
level <- function(g) { X <- predict(f, data.frame(x1 = at, g = g), type = "lpmatrix"); X[, !grepl(paste0("s(x1):g", g), colnames(X), fixed = TRUE)] <- 0; X }
m <- gam(y ~ s(x1) + s(x2, bs = "cr") + x3, data = rows, method = "REML", control = control)
new <- rows[1:20, ]
p <- predict(m, new, se.fit = TRUE, exclude = "s(x2)")
q <- predict(m, new, se.fit = TRUE, terms = c("s(x1)", "x3"))
write_json(list(at = arr(at), first = band(first, b), second = band(second, b), difference = band(level("a") - level("c"), f),
                exclude = list(estimate = arr(unname(p$fit)), se = arr(unname(p$se.fit))), terms = list(estimate = arr(unname(q$fit)), se = arr(unname(q$se.fit)))), "posterior.json", 9)
