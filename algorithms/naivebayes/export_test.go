package naivebayes

var Affordable = affordable
