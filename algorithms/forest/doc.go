// Package forest trains random forests, extremely randomised trees and single decision
// trees.
package forest
