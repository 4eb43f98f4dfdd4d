package jobmanager

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"io"

	"github.com/superstep-ml/superstep/internal/wire"
)

// platformsOf reads the platforms of an executable from the headers of its file. A universal
// binary of macOS has several platforms, and any other file has one. The headers of an ELF file
// name the processor but seldom the operating system. A file that names no operating system
// counts as a file for Linux, because Go's linker names none for Linux.
//
// It returns an error for a file that is shorter than its headers say. It also returns an error
// for a script, because a task manager may not have the interpreter.
func platformsOf(file io.ReaderAt) ([]wire.Platform, error) {
	head := make([]byte, 4)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	var found []wire.Platform
	switch {
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		found, err = elfPlatform(file)
	case bytes.HasPrefix(head, []byte("MZ")):
		found, err = pePlatform(file)
	case isMachO(head):
		found, err = machoPlatform(file)
	case bytes.HasPrefix(head, []byte("#!")):
		return nil, errors.New("it is a script; a job is a program built by go build")
	default:
		return nil, fmt.Errorf("it begins with %q, as no executable does", head)
	}
	if err != nil {
		return nil, fmt.Errorf("its headers do not make an executable, it may be cut short: %w", err)
	}
	return found, nil
}

func isMachO(head []byte) bool {
	for _, magic := range []string{"\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xfe\xed\xfa\xcf", "\xfe\xed\xfa\xce", "\xca\xfe\xba\xbe"} {
		if string(head) == magic {
			return true
		}
	}
	return false
}

var elfProcessors = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm",
	elf.EM_RISCV: "riscv64", elf.EM_LOONGARCH: "loong64", elf.EM_S390: "s390x",
}

func elfPlatform(file io.ReaderAt) ([]wire.Platform, error) {
	f, err := elf.NewFile(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN || f.Entry == 0 {
		return nil, fmt.Errorf("an ELF file of type %v that begins at %#x is a library or an object", f.Type, f.Entry)
	}
	for _, s := range f.Progs {
		if s.Type != elf.PT_LOAD || s.Filesz == 0 {
			continue
		}
		var last [1]byte
		if _, err := file.ReadAt(last[:], int64(s.Off+s.Filesz-1)); err != nil {
			return nil, fmt.Errorf("a segment ends at byte %d, the file before", s.Off+s.Filesz)
		}
	}
	arch, ok := elfProcessors[f.Machine]
	switch {
	case f.Machine == elf.EM_PPC64 && f.ByteOrder.String() == "LittleEndian":
		arch = "ppc64le"
	case f.Machine == elf.EM_PPC64:
		arch = "ppc64"
	case f.Machine == elf.EM_MIPS:
		arch = "mips"
	case !ok:
		return nil, fmt.Errorf("no Go program runs on a processor of kind %v", f.Machine)
	}
	systems := map[elf.OSABI]string{
		elf.ELFOSABI_NONE: "linux", elf.ELFOSABI_LINUX: "linux", elf.ELFOSABI_FREEBSD: "freebsd",
		elf.ELFOSABI_NETBSD: "netbsd", elf.ELFOSABI_OPENBSD: "openbsd", elf.ELFOSABI_SOLARIS: "solaris",
	}
	system, ok := systems[f.OSABI]
	if !ok {
		return nil, fmt.Errorf("no Go program runs on a system of kind %v", f.OSABI)
	}
	return []wire.Platform{{OS: system, Arch: arch}}, nil
}

func machoPlatform(file io.ReaderAt) ([]wire.Platform, error) {
	fat, err := macho.NewFatFile(file)
	if err == nil {
		defer fat.Close()
		var all []wire.Platform
		for _, a := range fat.Arches {
			p, err := machoFile(a.File)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
		return all, nil
	}
	f, err := macho.NewFile(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := machoFile(f)
	return []wire.Platform{p}, err
}

func machoFile(f *macho.File) (wire.Platform, error) {
	if f.Type != macho.TypeExec {
		return wire.Platform{}, fmt.Errorf("a Mach-O file of type %v is a library or an object", f.Type)
	}
	switch f.Cpu {
	case macho.CpuAmd64:
		return wire.Platform{OS: "darwin", Arch: "amd64"}, nil
	case macho.CpuArm64:
		return wire.Platform{OS: "darwin", Arch: "arm64"}, nil
	}
	return wire.Platform{}, fmt.Errorf("no Go program runs on a processor of kind %v", f.Cpu)
}

func pePlatform(file io.ReaderAt) ([]wire.Platform, error) {
	f, err := pe.NewFile(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Characteristics&pe.IMAGE_FILE_EXECUTABLE_IMAGE == 0 || f.Characteristics&pe.IMAGE_FILE_DLL != 0 {
		return nil, errors.New("a PE file that is a library or an object")
	}
	processors := map[uint16]string{
		pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64",
		pe.IMAGE_FILE_MACHINE_I386: "386", pe.IMAGE_FILE_MACHINE_ARMNT: "arm",
	}
	arch, ok := processors[f.Machine]
	if !ok {
		return nil, fmt.Errorf("no Go program runs on a processor of kind %#x", f.Machine)
	}
	return []wire.Platform{{OS: "windows", Arch: arch}}, nil
}
