# Pseudo-likelihood of graphs as a logistic regression: change statistics by brute force (every tie set and removed, the
# statistics computed anew from their definitions), then glm. Writes fits.csv: fit, term, estimate, se of glm.
#   Rscript tests/oracles/graphs/fits.R ../shared/data            (base R)
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)))
data <- commandArgs(TRUE)[1]
read <- function(name) read.csv(file.path(data, name))

geometric <- function(m, a) exp(a) * (1 - (1 - exp(-a))^m)
edges <- function(A, ...) sum(A)
mutual <- function(A, ...) sum(A * t(A)) / 2
ttriple <- function(A, ...) sum((A %*% A) * A)
ctriple <- function(A, ...) sum(diag(A %*% A %*% A)) / 3
gwesp <- function(decay) function(A, ...) sum(geometric((A %*% A)[A == 1], decay))
gwidegree <- function(decay) function(A, ...) sum(geometric(colSums(A), decay))
gwodegree <- function(decay) function(A, ...) sum(geometric(rowSums(A), decay))
memory <- function(A, B, ...) sum(A * (2 * B - 1) * (1 - diag(nrow(A))))
delrecip <- function(A, B, ...) sum(A * t(B))
edgecov <- function(D) function(A, ...) sum(A * D)
at <- function(x, t) if (is.matrix(x)) x[t, ] else x          # x by wave, or the same in all
absdiff <- function(x) function(A, B, t) sum(A * abs(outer(at(x, t), at(x, t), "-")))
nodematch <- function(x) function(A, B, t) sum(A * outer(at(x, t), at(x, t), "=="))
nodeicov <- function(x, lag) function(A, B, t) sum(A %*% at(x, t - lag))
nodeofactor <- function(x, level) function(A, B, t) sum((at(x, t) == level) %*% A)

# rows of the regression over waves `when`; skip[t, , ] are dyads that are left out
rows <- function(waves, when, terms, skip) {
  n <- dim(waves)[2]
  out <- NULL
  for (t in when) for (i in 1:n) for (j in 1:n) if (i != j && !skip[t, i, j]) {
    A <- waves[t, , ]
    B <- if (t > 1) waves[t - 1, , ] else NULL
    y <- A[i, j]
    A[i, j] <- 1
    with <- sapply(terms, function(s) s(A, B, t))
    A[i, j] <- 0
    out <- rbind(out, c(y, with - sapply(terms, function(s) s(A, B, t))))
  }
  out
}
results <- NULL
fit <- function(name, X) {
  m <- glm.fit(X[, -1], X[, 1], family = binomial(), control = glm.control(epsilon = 1e-14, maxit = 100))
  H <- crossprod(X[, -1] * sqrt(m$weights))
  results <<- rbind(results, data.frame(fit = name, term = colnames(X)[-1], estimate = sprintf("%.15g", m$coefficients),
                                        se = sprintf("%.15g", sqrt(diag(solve(H)))), rows = nrow(X)))
}

# --- s50: three waves of friendship among 50 pupils
e <- read("net_s50_edges.csv"); a <- read("net_s50_actors.csv")
s50 <- array(0, c(3, 50, 50)); s50[cbind(e$wave, e$from, e$to)] <- 1
none <- array(FALSE, dim(s50))
alcohol <- rbind(a$alcohol_w1, a$alcohol_w2, a$alcohol_w3); smoking <- rbind(a$smoking_w1, a$smoking_w2, a$smoking_w3)
fit("s50 wave 1", rows(s50, 1, list(edges = edges, mutual = mutual, ttriple = ttriple), none))
fit("s50", rows(s50, 2:3, list(edges = edges, mutual = mutual, "gwesp(0.25)" = gwesp(.25), "gwidegree(0.5)" = gwidegree(.5),
  "absdiff(alcohol)" = absdiff(alcohol), "nodematch(smoking)" = nodematch(smoking),
  "nodeicov(alcohol, lag=1)" = nodeicov(alcohol, 1), memory = memory, delrecip = delrecip), none))
# --- undirected: a tie where either names the other; each pair once
either <- pmax(s50[1, , ], t(s50[1, , ]))
undirected <- function(terms) {
  out <- NULL
  for (i in 1:49) for (j in (i + 1):50) {
    A <- either; A[i, j] <- A[j, i] <- 1; with <- sapply(terms, function(s) s(A))
    A[i, j] <- A[j, i] <- 0
    out <- rbind(out, c(either[i, j], with - sapply(terms, function(s) s(A))))
  }
  out
}
fit("s50 undirected", undirected(list(edges = function(A) sum(A) / 2, triangle = function(A) sum(diag(A %*% A %*% A)) / 6,
  "kstar(2)" = function(A) sum(choose(rowSums(A), 2)), "gwdegree(0.5)" = function(A) sum(geometric(rowSums(A), .5)),
  "gwdsp(0.25)" = function(A) sum(geometric((A %*% A)[upper.tri(A)], .25)), "degree(1)" = function(A) sum(rowSums(A) == 1),
  "nodefactor(smoking)[2]" = function(A) sum(A[smoking[1, ] == 2, ]), "nodefactor(smoking)[3]" = function(A) sum(A[smoking[1, ] == 3, ]))))

# --- Knecht: four waves among 26 pupils; 10 is a structural zero, empty is missing
d <- read("net_knecht_dyads.csv"); p <- read("net_knecht_pupils.csv"); q <- read("net_knecht_primary_edges.csv")
raw <- array(0, c(4, 26, 26)); raw[cbind(d$wave, d$from, d$to)] <- d$tie
absent <- !is.na(raw) & raw == 10; missing <- is.na(raw)
knecht <- raw; knecht[absent | missing] <- 0
primary <- matrix(0, 26, 26); primary[cbind(q$from, q$to)] <- 1
delinquency <- rbind(p$delinquency_w1, p$delinquency_w2, p$delinquency_w3, p$delinquency_w4)
gone <- absent | missing
skip <- gone
for (t in 2:4) skip[t, , ] <- gone[t, , ] | gone[t - 1, , ] | t(gone[t - 1, , ])     # what memory and delrecip read
fit("knecht", rows(knecht, 2:4, list(edges = edges, mutual = mutual, ctriple = ctriple, "gwesp(0.5)" = gwesp(.5),
  "gwodegree(1)" = gwodegree(1), "nodematch(sex)" = nodematch(p$sex), "nodeofactor(sex)[2]" = nodeofactor(p$sex, 2),
  "edgecov(primary)" = edgecov(primary), "nodeicov(delinquency, lag=1)" = nodeicov(delinquency, 1),
  memory = memory, delrecip = delrecip), skip))
write.csv(results, file.path(here, "fits.csv"), row.names = FALSE)
print(results)
