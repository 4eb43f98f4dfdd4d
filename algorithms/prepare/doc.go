// Package prepare makes features of columns: scalers, imputers, indexers, encoders, bins, hashes, polynomials, principal components.
package prepare
