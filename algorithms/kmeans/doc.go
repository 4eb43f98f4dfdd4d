// Package kmeans clusters points around k centres (k-means, by Lloyd's algorithm).
package kmeans
