# A surface of y and of the hour, which is constant within each choice, by mgcv's Cox model with strata, on
# surface_rows.csv; writes surface.csv.
#   Rscript tests/oracles/survival/surface.R            (mgcv)
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)))
suppressMessages(library(mgcv))
rows <- read.csv(file.path(here, "surface_rows.csv"))
rows$time <- 1
fit <- gam(cbind(time, stratum + 1) ~ te(y, hour, bs = "ps", k = 6), family = cox.ph, data = rows, weights = case,
           method = "REML")
at <- expand.grid(y = c(0.5, 1.5, 2.5, 3.5, 4.5), hour = c(3, 9, 15, 21))
X <- predict(fit, at, type = "lpmatrix") - predict(fit, transform(at, y = 2), type = "lpmatrix")
digits <- function(x) sprintf("%.12g", x)
write.csv(data.frame(at, estimate = digits(X %*% coef(fit)), conditional_se = digits(sqrt(rowSums((X %*% fit$Vp) * X))),
                     edf = digits(sum(fit$edf)), sp1 = digits(fit$sp[1]), sp2 = digits(fit$sp[2])),
          file.path(here, "surface.csv"), row.names = FALSE, quote = FALSE)
