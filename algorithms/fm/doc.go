// Package fm trains factorisation machines.
package fm
