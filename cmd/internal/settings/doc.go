// Package settings reads the configuration of the binaries. A setting is a flag with
// the tag `setting:"jobmanager.listen"`: its key in the configuration file, from which
// the name of its environment variable follows, SUPERSTEP_JOBMANAGER_LISTEN. What is
// given on the command line counts before the environment, that before the file, and
// the file before the default:
//
//	s, err := settings.Read(file, os.LookupEnv)
//	parser, err := kong.New(&cli, s.Option())
//	_, err = parser.Parse(args)          // asks s for what the command line leaves open
//	for _, v := range s.Show(parser) {   // every setting with where it comes from
//
// The file is YAML: maps of maps, whose keys joined by dots are those of settings.
// Keys that no setting has are errors that name the line and the nearest key.
package settings
