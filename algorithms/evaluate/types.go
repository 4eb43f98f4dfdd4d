package evaluate

type RankingReport struct{ A float64 }
