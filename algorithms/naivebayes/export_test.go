package naivebayes

// Affordable is for tests.
var Affordable = affordable
