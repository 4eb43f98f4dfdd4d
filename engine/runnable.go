package engine

// Runnable is a *Job with any type of arguments.
type Runnable interface {
	// Name returns the job's name.
	Name() string

	// check returns an error if the definition is wrong.
	check() error

	// rebuild builds the job in a process other than the one that submitted it. args are
	// the arguments as encodeArgs has encoded them.
	rebuild(args []byte, c *config, f facts) (*Builder, error)
}

func (j *Job[A]) rebuild(data []byte, c *config, f facts) (*Builder, error) {
	args := j.Arguments()
	if err := decodeArgs(data, &args); err != nil {
		return nil, err
	}
	return build(j, args, c, f)
}
