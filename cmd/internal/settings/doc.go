// Package settings reads the configuration of the binaries. A setting is a flag with the tag
// `setting:"jobmanager.listen"`: its key in the configuration file, from which the name of its
// environment variable follows, SUPERSTEP_JOBMANAGER_LISTEN. The command line has precedence
// over the environment, the environment over the file, and the file over the default:
//
//	s, err := settings.Read(file, os.LookupEnv)
//	parser, err := kong.New(&cli, s.Option())
//	_, err = parser.Parse(args)          // asks s for the flags that args lack
//	for _, v := range s.Show(parser) {   // every setting with its origin
//
// The file is YAML: nested maps, whose keys are joined by dots to the keys of settings. A key
// that no setting has is an error with the line and the nearest key.
package settings
