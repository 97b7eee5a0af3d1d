// A Go program at /dev/crypto: nothing can be loaded into it. Many goroutines encrypt at once, and the runtime's signals interrupt them.
package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

type sessionOp struct {
	cipher, mac, keylen uint32
	key                 *byte
	mackeylen           uint32
	mackey              *byte
	ses                 uint32
}

type cryptOp struct {
	ses               uint32
	op, flags         uint16
	len               uint32
	src, dst, mac, iv *byte
}

const ciocgsession, cioccrypt = 0xc0306366, 0xc0306368

func ioctl(file *os.File, request uintptr, argument unsafe.Pointer) {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), request, uintptr(argument)); errno != 0 {
		fmt.Fprintln(os.Stderr, "ioctl:", errno)
		os.Exit(1)
	}
}

func main() {
	key := []byte("\x2b\x7e\x15\x16\x28\xae\xd2\xa6\xab\xf7\x15\x88\x09\xcf\x4f\x3c")
	plain := []byte("\x6b\xc1\xbe\xe2\x2e\x40\x9f\x96\xe9\x3d\x7e\x11\x73\x93\x17\x2a")
	cipher := []byte("\x76\x49\xab\xac\x81\x19\xb2\x46\xce\xe9\x8e\x9b\x12\xe9\x19\x7d")
	iv := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	file, err := os.OpenFile("/dev/crypto", os.O_RDWR, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			session := sessionOp{cipher: 11, keylen: 16, key: &key[0]}
			ioctl(file, ciocgsession, unsafe.Pointer(&session))
			for j := 0; j < 200; j++ {
				out := make([]byte, 16)
				op := cryptOp{ses: session.ses, len: 16, src: &plain[0], dst: &out[0], iv: &iv[0]}
				ioctl(file, cioccrypt, unsafe.Pointer(&op))
				if !bytes.Equal(out, cipher) {
					fmt.Fprintln(os.Stderr, "wrong bytes")
					os.Exit(1)
				}
				runtime.KeepAlive(op)
			}
		}()
	}
	all.Wait()
}
