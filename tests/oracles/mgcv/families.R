# mgcv::gam with nb(), quasipoisson(), and binomial() with probit and cloglog links, on fits_rows.csv and MASS::quine.
# Run in this directory after fits.R: Rscript families.R. `se` is mgcv's (expected information); `se_observed` is from
# (XᵀWX + S)⁻¹ with W the observed information at mgcv's estimate, by differences of the log-likelihood.
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
rows <- read.csv("fits_rows.csv", stringsAsFactors = TRUE)
set.seed(21); rows$over <- rnbinom(nrow(rows), size = 1.7, mu = exp(1 + sin(2 * pi * rows$x1) + rows$off))
rows$any <- as.numeric(rows$count > 0)
write.csv(rows[c("over", "any")], "families_rows.csv", row.names = FALSE, quote = FALSE)
quine <- MASS::quine; write.csv(quine, "families_quine.csv", row.names = FALSE, quote = FALSE)
loglik <- function(b, eta) {
  y <- b$y; w <- b$prior.weights
  if (grepl("^Negative", b$family$family)) { th <- b$family$getTheta(TRUE); return(w * dnbinom(y, th, mu = exp(eta), log = TRUE)) }
  if (b$family$family == "quasipoisson") return(w * (y * eta - exp(eta)))
  mu <- b$family$linkinv(eta); w * (y * log(mu) + (1 - y) * log(1 - mu))
}
record <- function(text, family, name, data = "rows", weights = NULL) {
  d <- get(data); w <- if (is.null(weights)) NULL else d[[weights]]
  call <- list(formula = as.formula(text), family = family, data = d, method = "REML", control = control)
  if (!is.null(w)) call$weights <- w
  b <- do.call(gam, call)
  p <- predict(b, se.fit = TRUE); r <- predict(b, type = "response", se.fit = TRUE); at <- seq(1, nrow(d), 8)
  X <- predict(b, type = "lpmatrix"); eta <- b$linear.predictors; h <- 1e-3
  W <- -(loglik(b, eta + h) - 2 * loglik(b, eta) + loglik(b, eta - h)) / h^2
  S <- matrix(0, ncol(X), ncol(X)); k <- 1
  for (s in b$smooth) for (P in s$S) { i <- s$first.para:s$last.para; S[i, i] <- S[i, i] + b$sp[k] * P; k <- k + 1 }
  V <- solve(crossprod(X, W * X) + S) * b$sig2
  cat(sprintf("%-60s %-12s %.5f AIC %.4f edf %.3f\n", text, name, b$gcv.ubre, if (name == "quasipoisson") NA_real_ else AIC(b), sum(b$edf)))
  list(formula = text, family = name, link = b$family$link, data = data, weights = weights, score = unname(b$gcv.ubre),
       aic = if (name == "quasipoisson") NA_real_ else AIC(b), loglik = if (name == "quasipoisson") NA_real_ else as.numeric(logLik(b)), deviance = b$deviance, null_deviance = b$null.deviance,
       scale = b$sig2, theta = if (name == "nb") b$family$getTheta(TRUE) else NA_real_, edf_total = sum(b$edf), rows = arr(at - 1),
       eta = arr(unname(p$fit[at])), se = arr(unname(p$se.fit[at])), se_observed = arr(sqrt(rowSums((X[at, ] %*% V) * X[at, ]))),
       mu = arr(unname(r$fit[at])), pearson = arr(unname(residuals(b, "pearson"))[at]), deviances = arr(unname(residuals(b, "deviance"))[at]),
       working = arr(unname((b$y - b$fitted.values) / b$family$mu.eta(eta))[at]))
}
out <- list(
  record("over ~ s(x1) + s(x2)", nb(), "nb"),
  record("over ~ s(x1) + s(x2) + offset(off)", nb(), "nb", weights = "w"),
  record("over ~ s(x1, by = g) + g", nb(), "nb"),
  record("Days ~ Eth * Sex + Age", nb(), "nb", "quine"),
  record("over ~ s(x1) + s(g, bs = \"re\")", quasipoisson(), "quasipoisson"),
  record("over ~ s(x1, x2, k = 15) + offset(off)", quasipoisson(), "quasipoisson", weights = "w"),
  record("Days ~ Eth * Sex + Age", quasipoisson(), "quasipoisson", "quine"),
  record("cls ~ s(x1) + s(x2)", binomial("probit"), "binomial"),
  record("cls ~ s(x1) + te(x2, x3) + g", binomial("probit"), "binomial"),
  record("cbind(successes, trials - successes) ~ s(x1) + s(ang, bs = \"cc\")", binomial("probit"), "binomial"),
  record("any ~ s(x1) + s(x2) + offset(off)", binomial("cloglog"), "binomial"),
  record("cls ~ s(x1, g, bs = \"fs\", k = 5, m = 1)", binomial("cloglog"), "binomial"),
  record("cbind(successes, trials - successes) ~ s(x1) + s(x2)", binomial("cloglog"), "binomial"))
pair <- list(gam(over ~ s(x1), nb(), rows, method = "REML", control = control), gam(over ~ s(x1) + s(x2), nb(), rows, method = "REML", control = control))
a <- anova(pair[[1]], pair[[2]], test = "Chisq")
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(out),
                pair = list(deviance = arr(a[["Resid. Dev"]]), df = a[["Df"]][2], p = a[[ncol(a)]][2])), "families.json", 9)
print(a)
