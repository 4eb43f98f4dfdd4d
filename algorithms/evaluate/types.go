package evaluate

type RegressionReport struct{ A float64 }
type ClusteringReport struct{ A float64 }
type RankingReport struct{ A float64 }
