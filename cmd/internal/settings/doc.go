// Package settings reads the configuration of the binaries. A setting is a flag with a tag such
// as `setting:"jobmanager.listen"`. The value of the tag is the key of the setting in the
// configuration file. The name of its environment variable follows from the key:
// SUPERSTEP_JOBMANAGER_LISTEN. The command line has precedence over the environment, the
// environment over the file, and the file over the default:
//
//	s, err := settings.Read(file, os.LookupEnv)
//	parser, err := kong.New(&cli, s.Option())
//	parsed, err := parser.Parse(args)    // calls s for the flags that are not in args
//	s.Given(parsed)
//	for _, v := range s.Show(parser) {   // every setting with its origin
//
// The file is YAML with nested maps. The key of a setting consists of the map keys on the path
// to its value, joined by dots. A key that no setting has is an error. The error names the line
// and the most similar key.
package settings
