package evaluate

type ClusteringReport struct{ A float64 }
type RankingReport struct{ A float64 }
