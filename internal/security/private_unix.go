//go:build unix

package security

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// privateFolder is the name of the user's folder in the temporary directory.
func privateFolder() string { return fmt.Sprintf("superstep-%d", os.Getuid()) }

// openPrivate opens a file that only this user, or root, can have written and only they
// can read. What is checked is the open file, so nobody can exchange it in between; a
// pipe in its place does not make the caller wait.
func openPrivate(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errors.New("it is a symbolic link: give the file itself")
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = checkPrivate(info, os.Getuid())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkPrivate judges a file by owner and mode.
func checkPrivate(info fs.FileInfo, uid int) error {
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("its owner cannot be told")
	}
	owner, mode := int(stat.Uid), info.Mode().Perm()
	switch {
	case owner != uid && owner != 0:
		return fmt.Errorf("it belongs to user %d, and this is user %d: remove it, or give another", owner, uid)
	case owner == uid && mode&0o077 != 0:
		return fmt.Errorf("others may use it (mode %04o): run chmod 600 on it, and if they may have read it, remove it to have a new one made", mode)
	case owner != uid && mode&0o037 != 0:
		return fmt.Errorf("others may use it (mode %04o): let root and one group read it at most, by chmod 440", mode)
	}
	return nil
}

// PrivateFolder makes a folder for this user alone, if need be, and refuses one whose
// files others could replace.
func PrivateFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := checkFolder(dir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("others may write to it (mode %04o): run chmod 700 on it, or choose another", info.Mode().Perm())
	}
	return err
}

// checkFolder judges the folder of a private file: others must not be able to replace
// what is in it.
func checkFolder(dir string) error {
	link, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if stat, ok := link.Sys().(*syscall.Stat_t); ok && link.Mode()&fs.ModeSymlink != 0 && int(stat.Uid) != os.Getuid() && stat.Uid != 0 {
		return fmt.Errorf("it is a symbolic link of user %d: remove it, or choose another", stat.Uid)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return judgeFolder(info, os.Getuid())
}

func judgeFolder(info fs.FileInfo, uid int) error {
	if !info.IsDir() {
		return errors.New("it is not a folder")
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("its owner cannot be told")
	}
	owner := int(stat.Uid)
	switch {
	case owner != uid && owner != 0:
		return fmt.Errorf("it belongs to user %d, and this is user %d: remove it, or choose another", owner, uid)
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("others may replace files in it (mode %04o): run chmod 700 on it", info.Mode().Perm())
	}
	return nil
}

// checkKey judges the file of a private key, which, unlike a token, may be a link.
func checkKey(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o027 != 0 {
		return fmt.Errorf("others may use the key (mode %04o): run chmod 600 on it", mode)
	}
	return nil
}
