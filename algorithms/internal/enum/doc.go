// Package enum gives names to the constants of enumerated parameter types. The names appear in
// printed values, in models' files and in error messages.
//
//	var tasks = enum.Names[Task]{Type: "Task", What: "task", Names: []string{"regression", "classification"}}
//
//	func (t Task) String() string                      { return tasks.String(t) }
//	func (t Task) MarshalText() ([]byte, error)        { return tasks.Text(t) }
//	func (t *Task) UnmarshalText(text []byte) error    { return tasks.Parse(t, text) }
package enum
