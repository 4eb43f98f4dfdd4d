//go:build unix

package security

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// privateFolder returns the name of the user's folder in the temporary directory.
func privateFolder() string { return fmt.Sprintf("superstep-%d", os.Getuid()) }

// openPrivate opens a file for reading, and refuses it unless checkPrivate accepts its owner
// and mode. It checks the open file, so that nobody can replace the file between check and use.
// If the path is a named pipe, it does not wait for a writer.
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

// checkPrivate returns an error unless a file belongs to this user, uid, or to root, and others
// can neither write it nor read it. The group of a file of root may read it.
func checkPrivate(info fs.FileInfo, uid int) error {
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("its owner is not known")
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

// PrivateFolder makes a folder that only this user can write, if it does not exist. It returns
// an error for an existing folder in which others could replace files. If the group has the
// right to write, but not all users, PrivateFolder removes the rights of everybody but the
// owner and calls tell. The reason is that a kubelet grants such rights for a volume with
// fsGroup at every mount. PrivateFolder removes them only if nobody else has written to the
// folder: everything in it must belong to this user and must not be writable for all.
func PrivateFolder(dir string, tell func(repaired string)) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode(); mode.IsDir() && ownedBy(info, os.Getuid()) && mode.Perm()&0o022 == 0o020 {
		if err := takeBack(dir); err != nil {
			return fmt.Errorf("others may write to it (mode %04o), and that is not taken back: %w; look who wrote there, then run chmod -R go-w on it, or choose another", mode.Perm(), err)
		}
		tell(fmt.Sprintf("a group could write to %s (mode %04o); nothing in it is anybody else's, and only this user can now", dir, mode.Perm()))
	}
	if err := checkFolder(dir); err != nil {
		return err
	}
	info, err = os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("others may write to it (mode %04o): run chmod 700 on it, or choose another", info.Mode().Perm())
	}
	return err
}

func ownedBy(info fs.FileInfo, uid int) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}

// takeBack removes all rights of others from a folder and its contents, if everything belongs
// to this user. It changes folders before their contents, so that nobody can replace the
// contents meanwhile. It also removes the group's right to read: such folders are made with
// mode 0700, and have results and executables of all users of the cluster. The group of a
// kubelet (fsGroup) needs no rights if this user owns the volume.
func takeBack(dir string) error {
	if parent, err := os.Stat(filepath.Dir(dir)); err != nil {
		return err
	} else if parent.Mode().Perm()&0o002 != 0 && parent.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("everybody may replace it, as %s is open to all (mode %04o)", filepath.Dir(dir), parent.Mode().Perm())
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		switch {
		case err != nil:
			return err
		case !ownedBy(info, os.Getuid()):
			return fmt.Errorf("%s is somebody else's", path)
		case info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o002 != 0:
			return fmt.Errorf("everybody may write to %s (mode %04o)", path, info.Mode().Perm())
		}
		return nil
	})
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := e.Info()
		if err != nil || info.Mode().Perm()&0o077 == 0 {
			return err
		}
		return os.Chmod(path, info.Mode().Perm()&^0o077)
	})
}

// checkFolder returns an error if users other than this user and root could replace files in
// the folder.
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
	return checkFolderAccess(info, os.Getuid())
}

func checkFolderAccess(info fs.FileInfo, uid int) error {
	if !info.IsDir() {
		return errors.New("it is not a folder")
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("its owner is not known")
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

// checkKey returns an error if others may use the file of a private key. Unlike a token file,
// it may be a symbolic link, and its group may read it.
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
