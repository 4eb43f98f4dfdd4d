// Package pmml writes models as PMML, and reads what it wrote.
package pmml
