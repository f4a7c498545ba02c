# mgcv::gam with bs = "gp", "sos", "mrf", "ad", each on three data sets or more. Run in this directory after fits.R: Rscript bases.R
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
set.seed(31)
rows <- read.csv("fits_rows.csv", stringsAsFactors = TRUE)
globe <- data.frame(lat = round(asin(runif(250, -1, 1)) * 180 / pi, 2), lon = round(runif(250, -180, 180), 2))
globe$f <- with(globe, 2 * sin(lat * pi / 180) * cos(lon * pi / 180) + sin(3 * lat * pi / 180))
globe$y <- round(globe$f + rnorm(250, sd = .3), 4); globe$count <- rpois(250, exp(globe$f)); globe$cls <- rbinom(250, 1, plogis(globe$f)); globe$f <- NULL
side <- 5  # regions on a lattice, named r11 … r55; r33 has no rows
nb <- list(); for (i in 1:side) for (j in 1:side) {
  at <- rbind(c(i - 1, j), c(i + 1, j), c(i, j - 1), c(i, j + 1)); at <- at[at[, 1] %in% 1:side & at[, 2] %in% 1:side, , drop = FALSE]
  nb[[paste0("r", i, j)]] <- paste0("r", at[, 1], at[, 2])
}
region <- data.frame(i = sample(1:side, 300, TRUE), j = sample(1:side, 300, TRUE)); region <- region[!(region$i == 3 & region$j == 3), ]
f <- with(region, sin(i) + .2 * j); region$region <- paste0("r", region$i, region$j)
region$y <- round(f + rnorm(nrow(region), sd = .5), 4); region$count <- rpois(nrow(region), exp(f)); region$cls <- rbinom(nrow(region), 1, plogis(f))
region$x <- round(runif(nrow(region)), 3); region <- region[c("region", "x", "y", "count", "cls")]
x <- round(sort(runif(300)), 4)
bumps <- data.frame(x = x, y = round(sin(40 * x^4) + rnorm(300, sd = .2), 4)); bumps$count <- rpois(300, exp(1 + sin(40 * x^4)))
mcycle <- MASS::mcycle
for (name in c("globe", "region", "bumps", "mcycle")) write.csv(get(name), paste0("bases_", name, ".csv"), row.names = FALSE, quote = FALSE)
region$region <- factor(region$region, levels = names(nb)); xt <- list(nb = nb)
record <- function(text, family, data, tag) {
  d <- get(data); b <- gam(as.formula(text), family, d, method = "REML", control = control, drop.unused.levels = FALSE)
  new <- d[seq(1, nrow(d), length.out = 40), ]; p <- predict(b, new, se.fit = TRUE)
  cat(sprintf("%-55s %-9s %.5f AIC %.4f edf %.3f\n", text, family$family, b$gcv.ubre, AIC(b), sum(b$edf)))
  list(formula = text, bs = tag, family = family$family, data = data, score = unname(b$gcv.ubre), aic = AIC(b), edf_total = sum(b$edf),
       rows = arr(as.integer(seq(1, nrow(d), length.out = 40)) - 1), eta = arr(unname(p$fit)), se = arr(unname(p$se.fit)))
}
out <- list(
  record("y ~ s(x1, bs = \"gp\")", gaussian(), "rows", "gp"),
  record("count ~ s(x1, x2, bs = \"gp\", k = 25) + s(x3, bs = \"gp\", m = c(2, .4, 1.5))", poisson(), "rows", "gp"),
  record("cls ~ s(x1, bs = \"gp\", k = 8, m = c(-5, .5))", binomial(), "rows", "gp"),
  record("accel ~ s(times, bs = \"gp\", k = 25, m = c(4, 10))", gaussian(), "mcycle", "gp"),
  record("y ~ s(lat, lon, bs = \"gp\", k = 30, m = 1)", gaussian(), "globe", "gp"),
  record("y ~ s(lat, lon, bs = \"sos\")", gaussian(), "globe", "sos"),
  record("count ~ s(lat, lon, bs = \"sos\", k = 40, m = -1)", poisson(), "globe", "sos"),
  record("cls ~ s(lat, lon, bs = \"sos\", k = 30, m = 1)", binomial(), "globe", "sos"),
  record("y ~ s(lat, lon, bs = \"sos\", k = 30, m = 2)", gaussian(), "globe", "sos"),
  record("y ~ s(lat, lon, bs = \"sos\", k = 20, m = 3)", gaussian(), "globe", "sos"),
  record("y ~ s(lat, lon, bs = \"sos\", k = 20, m = 4)", gaussian(), "globe", "sos"),
  record("y ~ s(region, bs = \"mrf\", xt = xt)", gaussian(), "region", "mrf"),
  record("count ~ s(region, bs = \"mrf\", xt = xt) + s(x)", poisson(), "region", "mrf"),
  record("cls ~ s(region, bs = \"mrf\", k = 10, xt = xt)", binomial(), "region", "mrf"),
  record("y ~ s(x, bs = \"ad\")", gaussian(), "bumps", "ad"),
  record("count ~ s(x, bs = \"ad\", k = 30, m = 3)", poisson(), "bumps", "ad"),
  record("accel ~ s(times, bs = \"ad\", k = 30, m = 4)", gaussian(), "mcycle", "ad"))
write_json(list(mgcv = as.character(packageVersion("mgcv")), nb = lapply(nb, arr), fits = arr(out)), "bases.json", 9)
