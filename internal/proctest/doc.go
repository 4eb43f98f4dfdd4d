// Package proctest starts programs for tests. On Linux no program outlives the test process: the
// system kills a program when the process that started it ends. That works even if the test process
// panics, is killed or exceeds the time limit of go test, when the cleanups of tests do not run.
//
//	cmd := proctest.Command(path, "--listen", "127.0.0.1:0")
//	require.NoError(t, cmd.Start())
//	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
package proctest
