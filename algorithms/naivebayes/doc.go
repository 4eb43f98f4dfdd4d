// Package naivebayes trains naive Bayes classifiers: Gaussian, multinomial and Bernoulli.
package naivebayes
