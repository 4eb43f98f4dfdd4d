package engine

// Runnable is a *Job of any arguments.
type Runnable interface {
	// Name returns the job's name.
	Name() string

	// check says what is wrong with the definition.
	check() error

	// rebuild builds the job in another process than the one that submitted it, from
	// its arguments as encodeArgs wrote them.
	rebuild(args []byte, c *config, f facts) (*Builder, error)
}

func (j *Job[A]) rebuild(data []byte, c *config, f facts) (*Builder, error) {
	args := j.Arguments()
	if err := decodeArgs(data, &args); err != nil {
		return nil, err
	}
	return build(j, args, c, f)
}
