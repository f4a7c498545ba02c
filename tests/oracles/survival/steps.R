# Step selection on steps_rows.csv: conditional logistic regression, tilted (habitat alone) and integrated, and a smooth
# of habitat by mgcv's Cox model with strata; writes steps.csv and steps_smooth.csv.
#   Rscript tests/oracles/survival/steps.R            (survival, mgcv)
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)))
rows <- read.csv(file.path(here, "steps_rows.csv"))
library(survival)
tight <- coxph.control(eps = 1e-12, toler.chol = 1e-14, toler.inf = 1e-6)
out <- data.frame()
keep <- function(model, fit) out <<- rbind(out, data.frame(
  model = model, term = names(coef(fit)), estimate = coef(fit), se = sqrt(diag(vcov(fit))), loglik = fit$loglik[2]))
keep("tilted", clogit(case ~ forest + strata(stratum), rows, method = "exact", control = tight))
keep("integrated", clogit(case ~ forest + forest:night + step + log_step + cos_turn + strata(stratum), rows,
                          method = "exact", control = tight))
out[3:5] <- lapply(out[3:5], function(x) sprintf("%.15g", x))
write.csv(out, file.path(here, "steps.csv"), row.names = FALSE, quote = FALSE)
suppressMessages(library(mgcv))
rows$time <- 1
fit <- gam(cbind(time, stratum) ~ s(forest, bs = "cr", k = 6) + log_step, family = cox.ph, data = rows, weights = case,
           method = "REML", knots = list(forest = seq(0.05, 0.95, length.out = 6)))
at <- data.frame(forest = seq(0.1, 0.9, 0.1), log_step = 0, time = 1, stratum = 0)
X <- predict(fit, at, type = "lpmatrix"); X <- sweep(X, 2, X[5, ])  # against forest = 0.5
write.csv(data.frame(forest = at$forest, estimate = sprintf("%.12g", X %*% coef(fit)),
                     se = sprintf("%.12g", sqrt(rowSums((X %*% vcov(fit, unconditional = TRUE)) * X))), edf = sprintf("%.12g", sum(fit$edf[-1]))),
          file.path(here, "steps_smooth.csv"), row.names = FALSE, quote = FALSE)
