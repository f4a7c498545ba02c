# mgcv::gam on nearly separated rows, where smoothing parameters run off to infinity if one lets them.
# Run in this directory: Rscript separation.R. Writes separation.csv (one block of rows per data set) and separation.json.
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
rows <- list(); out <- list()
for (seed in 1:24) {
  set.seed(seed)
  n <- c(60, 120)[1 + seed %% 2]; noise <- c(.06, .1, .25)[1 + seed %% 3]
  d <- data.frame(set = seed, x = round(runif(n), 3), g = sample(letters[1:6], n, replace = TRUE), stringsAsFactors = TRUE)
  d$sep <- as.numeric(d$x + noise * rnorm(n) + .1 * (d$g == "a") > .5)
  rows[[seed]] <- d
  text <- c("sep ~ s(x) + s(g, bs='re')", "sep ~ s(x)", "sep ~ s(x, bs='cr') + s(g, bs='re')", "sep ~ s(x, k=6) + s(g, x, bs='re')")[1 + seed %% 4]
  b <- tryCatch(gam(as.formula(text), binomial(), d, method = "REML", control = control), error = function(e) NULL, warning = function(w) NULL)
  if (is.null(b)) next
  cat(sprintf("%2d %-40s n %3d %.5f sp %s\n", seed, text, n, b$gcv.ubre, paste(signif(b$sp, 3), collapse = " ")))
  out[[length(out) + 1]] <- list(set = seed, formula = text, score = unname(b$gcv.ubre), sp = arr(unname(b$sp)), edf_total = sum(b$edf), converged = b$outer.info$conv)
}
write.csv(do.call(rbind, rows), "separation.csv", row.names = FALSE, quote = FALSE)
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(out)), "separation.json", 9)
