// Package settings reads the configuration of the binaries: flags before environment
// before file before defaults, with the origin of each value.
package settings
