package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

// readLinks reads a file of links with the standard library.
func readLinks(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	return lines[1:]
}

// powers returns the ranks by power iteration: it multiplies the dense matrix of transition
// probabilities with the ranks 500 times, after which the ranks no longer change.
func powers(links [][]string, damping float64) map[string]float64 {
	var pages []string
	for _, l := range links {
		pages = append(pages, l...)
	}
	slices.Sort(pages)
	pages = slices.Compact(pages)
	n := len(pages)
	chance := make([][]float64, n) // chance[i][j] is the probability of moving from page i to page j
	for i, from := range pages {
		chance[i] = make([]float64, n)
		outs := 0.0
		for j, to := range pages {
			if slices.ContainsFunc(links, func(l []string) bool { return l[0] == from && l[1] == to }) {
				chance[i][j] = 1
				outs++
			}
		}
		for j := range pages {
			if outs == 0 {
				chance[i][j] = 1 / float64(n)
			} else {
				chance[i][j] = damping*chance[i][j]/outs + (1-damping)/float64(n)
			}
		}
	}
	rank := slices.Repeat([]float64{1 / float64(n)}, n)
	for range 500 {
		next := make([]float64, n)
		for i := range pages {
			for j := range pages {
				next[j] += rank[i] * chance[i][j]
			}
		}
		rank = next
	}
	ranks := map[string]float64{}
	for i, page := range pages {
		ranks[page] = rank[i]
	}
	return ranks
}

func ranks(t *testing.T, a args, p int) []ranked {
	t.Helper()
	r, err := engine.Run(t.Context(), job, a, engine.Parallelism(p))
	require.NoError(t, err)
	defer r.Release()
	rows, err := engine.Rows[ranked](r, "ranks")
	require.NoError(t, err)
	return rows
}

// check compares the ranks of the job with the results of powers, and requires that the ranks
// have the same bits at parallelism 1 and 3.
func check(t *testing.T, a args, path string) {
	t.Helper()
	got, want := ranks(t, a, 1), powers(readLinks(t, path), a.Damping)
	require.Len(t, got, len(want))
	sum := 0.0
	for i, page := range got {
		require.InDelta(t, want[page.Page], page.Rank, 1e-11, page.Page)
		require.True(t, i == 0 || page.Rank <= got[i-1].Rank)
		sum += page.Rank
	}
	require.InDelta(t, 1, sum, 1e-12)
	require.Equal(t, got, ranks(t, a, 3))
}

func TestImports(t *testing.T) {
	check(t, args{Damping: 0.85, Tol: 1e-13}, "data/imports.csv")
}

// TestFewLinks runs check on links among which are pages whose names are numbers, a page without
// outgoing links, a page that links only to itself, and a repeated link.
func TestFewLinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.csv")
	require.NoError(t, os.WriteFile(path, []byte("a,b\n1,2\n1,2\n1,30\n2,30\n4,4\n4,1\n5,5\n"), 0o600))
	links := args{Input: path, Damping: 0.6, Tol: 1e-14}
	check(t, links, path)
	links.Damping = 0 // all pages have the same rank, as no reader follows links
	for _, page := range ranks(t, links, 2) {
		require.InDelta(t, 0.2, page.Rank, 1e-15)
	}
}

func TestNoLinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.csv")
	require.NoError(t, os.WriteFile(path, []byte("a,b\n"), 0o600))
	require.Empty(t, ranks(t, args{Input: path, Damping: 0.85, Tol: 1e-9}, 3))
}

func TestBadArguments(t *testing.T) {
	for _, a := range []args{{Damping: 1, Tol: 1}, {Damping: -0.1, Tol: 1}, {Damping: math.NaN(), Tol: 1}, {Damping: 0.5}, {Damping: 0.5, Tol: 1, Top: -1}} {
		require.ErrorContains(t, a.Validate(), "must be", fmt.Sprint(a))
	}
	require.NoError(t, args{Damping: 0.85, Tol: 1e-9, Top: 3}.Validate())
}

// TestMissingName requires that the error about a link without a name contains its line number.
func TestMissingName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.csv")
	require.NoError(t, os.WriteFile(path, []byte("a,b\nx,y\n,z\n"), 0o600))
	_, err := engine.Run(t.Context(), job, args{Input: path, Damping: 0.85, Tol: 1e-9})
	require.Error(t, err)
	require.True(t, strings.Contains(err.Error(), "links.csv:3") || strings.Contains(err.Error(), "line 3"), err.Error())
}
