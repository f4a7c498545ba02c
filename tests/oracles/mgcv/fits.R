# mgcv::gam fits that the engine must reproduce. Run in this directory: Rscript fits.R
# Writes fits_rows.csv, fits_chain.csv (the data) and fits.json (the answers); the format is in README.md.
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))

## ---- data: covariates with at most 6 digits, so that the CSV is exact ----
set.seed(7)
n <- 240
rows <- data.frame(x1 = round(runif(n), 2), x2 = round(rbeta(n, 2, 2), 2), x3 = round(runif(n, -1, 1), 3),
                   ang = round(runif(n, -pi, pi), 3), lin = round(rnorm(n), 2), z = round(rnorm(n, 1), 2),
                   g = factor(sample(letters[1:6], n, replace = TRUE)))
bump <- c(a = -.5, b = .1, c = .7, d = -.2, e = .3, f = 0)[as.character(rows$g)]
f <- with(rows, sin(2 * pi * x1) + 2 * (x2 - .5)^2 * 3 + .6 * cos(ang) + .4 * lin + bump * (1 + x1)
          + .8 * x1 * x2 + .3 * z * cos(3 * x1) + .3 * x3 * x2)
rows$off <- round(runif(n, -.5, .5), 2)
rows$w <- round(runif(n, .5, 2), 2)
rows$trials <- sample(1:8, n, replace = TRUE)
rows$y <- round(f + rnorm(n, sd = .4), 4)
rows$y_off <- round(rows$y + rows$off, 4)
rows$cls <- rbinom(n, 1, plogis(1.5 * f - .8))
rows$cls_off <- rbinom(n, 1, plogis(1.5 * f - .8 + rows$off))
rows$prop <- rbinom(n, rows$trials, plogis(f - .5)) / rows$trials
rows$count <- rpois(n, exp(.5 * f + .3))
rows$count_off <- rpois(n, exp(.5 * f + .3 + rows$off))
rows$prop <- round(rows$prop * rows$trials) / rows$trials
save <- rows; save$prop <- NULL; save$successes <- round(rows$prop * rows$trials)
write.csv(save, "fits_rows.csv", row.names = FALSE, quote = FALSE)

# A spatial Markov chain in [-10,10] x [-7.5,7.5] and 10 uniform reference points for each of its steps.
set.seed(11)
steps <- 150; per <- 10
at <- matrix(0, steps + 1, 2)
logf <- function(y, x) {
  d <- y - x; r <- sqrt(sum(d^2)); a <- atan2(d[2], d[1])
  -.12 * r - .035 * sum(y^2) + .5 * cos(2 * a) + log(r + .1) * .4
}
for (t in 1:steps) repeat {
  y <- c(runif(1, -10, 10), runif(1, -7.5, 7.5))
  if (log(runif(1)) < logf(y, at[t, ]) - 2.2) { at[t + 1, ] <- round(y, 3); break }
}
chain <- do.call(rbind, lapply(1:steps, function(t) {
  y <- rbind(at[t + 1, ], cbind(runif(per, -10, 10), runif(per, -7.5, 7.5)))
  d <- sweep(y, 2, at[t, ])
  data.frame(cls = c(1, rep(0, per)), delta = round(sqrt(rowSums(d^2)), 2), dcenter = round(sqrt(rowSums(y^2)), 2),
             angle = round(atan2(d[, 2], d[, 1]), 3), px = at[t, 1], py = at[t, 2])
}))
write.csv(chain, "fits_chain.csv", row.names = FALSE, quote = FALSE)
rows <- read.csv("fits_rows.csv", stringsAsFactors = TRUE); rows$prop <- rows$successes / rows$trials
chain <- read.csv("fits_chain.csv")

## ---- what is recorded of a fit ----
take <- function(n, most) if (n <= most) seq_len(n) else unique(round(seq(1, n, length.out = most)))
record <- function(name, formula, data, family, method, knots = list(), weights = NULL, offset = NULL, python = NULL) {
  response <- deparse(formula[[2]])
  call <- list(formula = formula, data = data, family = family, method = method, knots = knots, control = control)
  if (!is.null(weights)) call$weights <- data[[weights]]
  if (!is.null(offset)) call$offset <- data[[offset]]
  b <- do.call(gam, call)
  su <- summary(b)
  at <- take(nrow(data), 160); few <- take(nrow(data), 40)
  p <- predict(b, se.fit = TRUE)
  u <- if (is.null(b$Vc)) NULL else predict(b, se.fit = TRUE, unconditional = TRUE)
  terms <- predict(b, type = "terms", se.fit = TRUE)
  smooth <- lapply(seq_along(b$smooth), function(i) {
    s <- b$smooth[[i]]; here <- s$first.para:s$last.para
    list(label = s$label, size = length(here), null_dim = s$null.space.dim, penalties = length(s$S), edf = sum(b$edf[here]),
         edf1 = sum(b$edf1[here]), edf2 = if (is.null(b$edf2)) NULL else sum(b$edf2[here]),
         ref_df = su$s.table[i, 2], statistic = su$s.table[i, 3], p_value = su$s.table[i, 4])
  })
  parametric <- lapply(seq_len(nrow(su$p.table)), function(i)
    list(label = rownames(su$p.table)[i], estimate = su$p.table[i, 1], se = su$p.table[i, 2], statistic = su$p.table[i, 3],
         p_value = su$p.table[i, 4]))
  effects <- lapply(colnames(terms$fit), function(l) list(label = l, fit = arr(unname(terms$fit[few, l])), se = arr(unname(terms$se.fit[few, l]))))
  # the criterion away from its minimum: a fit's score can be checked at the same smoothing parameters
  sp <- b$full.sp; if (is.null(sp)) sp <- b$sp
  free <- length(b$sp) > 0 && all(is.finite(b$sp)) && all(b$sp > 0) && all(b$sp < 1e6)
  score_at <- if (free && all(vapply(b$smooth, function(s) is.null(s$sp) || all(s$sp < 0), TRUE)))
    lapply(list(rep(.3, length(b$sp)), exp(seq(-1, 1, length.out = length(b$sp) + 1))[-1]), function(by) {
      other <- do.call(gam, c(call, list(sp = unname(b$sp) * by)))
      list(sp = arr(unname(b$sp) * by), score = unname(other$gcv.ubre), deviance = deviance(other), edf = sum(other$edf))
    }) else list()
  cat(sprintf("%-28s %-9s %-7s score %.5f edf %.3f sp %s\n", name, family$family, method, b$gcv.ubre, sum(b$edf),
              paste(signif(b$sp, 3), collapse = " ")))
  list(name = name, data = if (nrow(data) == n) "rows" else "chain", formula = python, r_formula = paste(deparse(formula, 500), collapse = ""),
       response = response, family = family$family, method = method, knots = lapply(knots, arr), weights = weights, offset = offset,
       sp = arr(unname(b$sp)), score = unname(b$gcv.ubre), edf_total = sum(b$edf), deviance = deviance(b), null_deviance = b$null.deviance,
       loglik = as.numeric(logLik(b)), loglik_df = attr(logLik(b), "df"), aic = AIC(b), bic = BIC(b), scale = su$dispersion, dev_explained = su$dev.expl,
       r_squared = su$r.sq, converged = b$converged, smooth = arr(smooth), parametric = arr(parametric),
       rows = arr(at - 1), eta = arr(unname(p$fit[at])), se = arr(unname(p$se.fit[at])), se_unconditional = if (is.null(u)) NULL else arr(unname(u$se.fit[at])),
       effect_rows = arr(few - 1), effects = arr(effects), score_at = arr(score_at))
}

## ---- the models: the string that unnorm reads, and any knots ----
set.seed(3)
grid2 <- list(x1 = round(runif(90), 3), x2 = round(rbeta(90, 2, 2), 3))
grid3 <- c(lapply(grid2, function(x) x), list(x3 = round(runif(90, -1, 1), 3)))
circle <- list(ang = round(c(-pi, pi), 6))
models <- list(
  tp = list("s(x1)"), tp_m1 = list("s(x1, m=1)"), tp_m3 = list("s(x2, k=8, m=3)"),
  tp_2d = list("s(x1, x2, k=25)", grid2), tp_3d = list("s(x1, x2, x3, k=30)", grid3),
  cr = list("s(x1, bs='cr', k=12)"), cc = list("s(ang, bs='cc', k=12)", circle), cc_data = list("s(ang, bs='cc', k=12)"),
  ps = list("s(x1, bs='ps', k=12)"), ps_m = list("s(x2, bs='ps', k=9, m=c(1, 1))"), cp = list("s(ang, bs='cp', k=12)", circle),
  re = list("s(x1) + s(g, bs='re')"), re_slope = list("s(g, x1, bs='re') + s(g, bs='re')"), fs = list("s(x1, g, bs='fs', k=6)"),
  fs_main = list("s(x1, k=8) + s(x1, g, bs='fs', k=5, m=1)"),
  te = list("te(x1, x2)"), te_cc = list("te(x2, ang, bs=c('cr', 'cc'), k=c(5, 7))", circle), te_tp = list("te(x1, x2, bs='tp', k=c(5, 4))"),
  te_ps = list("te(x1, x2, bs='ps', k=c(6, 5))"), te_2d = list("te(x1, x2, x3, d=c(2, 1), bs=c('tp', 'cr'), k=c(10, 4))", grid2),
  ti = list("ti(x1) + ti(x2) + ti(x1, x2)"), by_factor = list("g + s(x1, by=g, k=6)"), by_numeric = list("s(x1, by=z, k=8) + s(x2)"),
  by_te = list("te(x1, x2, by=z, k=c(4, 4))"),
  parametric = list("x2 + g + s(x1)"), linear_only = list("x1 + x2 + g"), multi = list("s(x1) + s(x2, bs='cr') + s(ang, bs='cc', k=8)", circle),
  straight = list("s(x1) + s(lin, k=6)"), fixed_sp = list("s(x1, sp=0.01) + s(x2)"), fx = list("s(x1, k=6, fx=TRUE) + s(x2)"))
families <- list(gaussian = list("y", gaussian(), "y_off"), binomial = list("cls", binomial(), "cls_off"), poisson = list("count", poisson(), "count_off"))
python <- function(s) {                    # the same terms as unnorm writes them
  s <- gsub("TRUE", "True", s)
  s <- gsub("c\\(([^()]*)\\)", "(\\1)", s)
  s <- gsub("(^|[+] )g( [+]|$)", "\\1factor(g)\\2", s)
  for (v in c("x1", "x2")) s <- gsub(sprintf("(^|[+] )%s( [+]|$)", v), sprintf("\\1linear(%s)\\2", v), s)
  s
}
fit <- function(name, response, text, knots, family, method, ...)
  record(name, as.formula(paste(response, "~", gsub("'", '"', text))), rows, family, method, knots, ..., python = paste(response, "~", python(text)))
out <- list()
for (fam in names(families)) for (name in names(models)) {
  m <- models[[name]]; knots <- if (length(m) > 1) m[[2]] else list()
  out[[length(out) + 1]] <- fit(paste(name, fam, "REML", sep = "-"), families[[fam]][[1]], m[[1]], knots, families[[fam]][[2]], "REML")
}
for (fam in names(families)) for (name in c("tp", "multi", "re", "te", "by_numeric")) for (method in c("ML", "GCV.Cp")) {
  m <- models[[name]]; knots <- if (length(m) > 1) m[[2]] else list()
  out[[length(out) + 1]] <- fit(paste(name, fam, method, sep = "-"), families[[fam]][[1]], m[[1]], knots, families[[fam]][[2]], method)
}
multi <- models$multi
for (fam in names(families)) for (method in c("REML", "GCV.Cp")) {
  v <- families[[fam]]
  out[[length(out) + 1]] <- fit(paste("offset", fam, method, sep = "-"), v[[3]], multi[[1]], multi[[2]], v[[2]], method, offset = "off")
  out[[length(out) + 1]] <- suppressWarnings(fit(paste("weights", fam, method, sep = "-"), v[[1]], multi[[1]], multi[[2]], v[[2]], method, weights = "w"))
  out[[length(out) + 1]] <- suppressWarnings(fit(paste("both", fam, method, sep = "-"), v[[3]], multi[[1]], multi[[2]], v[[2]], method, offset = "off", weights = "w"))
}
out[[length(out) + 1]] <- fit("trials-binomial-REML", "prop", multi[[1]], multi[[2]], binomial(), "REML", weights = "trials")
out[[length(out) + 1]] <- fit("no_intercept-gaussian-REML", "y", "s(x1) + x2 - 1", list(), gaussian(), "REML")

q <- function(x, k) round(quantile(unique(x), seq(0, 1, length.out = k), names = FALSE), 3)
paper_knots <- list(delta = q(chain$delta, 60), dcenter = q(chain$dcenter, 80), px = unique(chain[c("px", "py")])$px,
                    py = unique(chain[c("px", "py")])$py, angle = round(c(-pi, pi), 6))
for (method in c("REML", "ML", "GCV.Cp"))
  out[[length(out) + 1]] <- record(paste0("paper-binomial-", method),
    cls ~ s(delta, k = 10) + s(dcenter, k = 40) + s(px, py, k = 40) + s(angle, bs = "cc", k = 20), chain, binomial(), method, paper_knots,
    python = "cls ~ s(delta, k=10) + s(dcenter, k=40) + s(px, py, k=40) + s(angle, bs='cc', k=20)")
write_json(list(mgcv = as.character(packageVersion("mgcv")), r = R.version.string, fits = arr(out)), "fits.json", 9)
