// Package tune chooses the program for a collective and a size, and says why.
package tune
