# Conditional logistic regression, and the binomial models of Section 4.1, on rows.csv; writes fits.csv.
#   Rscript tests/oracles/survival/fits.R            (survival, mgcv)
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)))
rows <- read.csv(file.path(here, "rows.csv"))
rows$d <- -0.5 * (rows$y - rows$y_prev)^2
out <- data.frame()
keep <- function(model, theta, V, loglik)
  out <<- rbind(out, data.frame(model = model, theta1 = theta[1], theta2 = theta[2], se1 = sqrt(V[1, 1]),
                                se2 = sqrt(V[2, 2]), loglik = loglik))
library(survival)
fit <- clogit(z ~ y + d + strata(set), rows, method = "exact", 
              control = coxph.control(eps = 1e-12, toler.chol = 1e-14, toler.inf = 1e-6))
keep("clogit", coef(fit), vcov(fit), fit$loglik[2])
tight <- glm.control(epsilon = 1e-14, maxit = 100)
fit <- glm(z ~ 0 + y + d + factor(set), binomial, rows, control = tight)
keep("parametric", coef(fit), vcov(fit), as.numeric(logLik(fit)))
fit <- glm(z ~ y + d, binomial, rows, control = tight)
keep("ignored", coef(fit)[-1], vcov(fit)[-1, -1], as.numeric(logLik(fit)))
suppressMessages(library(mgcv))
for (method in c("GCV.Cp", "REML")) {
  fit <- gam(z ~ y + d + s(y_prev, k = 10), binomial, rows, method = method)
  V <- vcov(fit, unconditional = method == "REML")  # with what not knowing the smoothing parameter adds
  keep(paste("semiparametric", method), coef(fit)[2:3], V[2:3, 2:3], as.numeric(logLik(fit)))
}
out[-1] <- lapply(out[-1], function(x) sprintf("%.15g", x))
write.csv(out, file.path(here, "fits.csv"), row.names = FALSE, quote = FALSE)
