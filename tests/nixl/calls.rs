// Calls NIXL's C library as programs in Rust do: it opens the library by its bare name, and looks up
// each function. Two agents of one process do a READ, a WRITE with a notification, a transfer of
// prepared blocks, and an exchange of partial metadata.
//
// usage: viaduct exec --nixl -- calls
use std::ffi::{CStr, CString};
use std::mem::transmute;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

type Status = c_int;
type Object = *mut c_void;
const SUCCESS: Status = 0;
const IN_PROGRESS: Status = 1;
const NOT_FOUND: Status = -6;
const DRAM: c_int = 0;
const READ: c_int = 0;
const WRITE: c_int = 1;
const BLOCK: usize = 4096;
const BLOCKS: usize = 8;

extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> Object;
    fn dlsym(library: Object, name: *const c_char) -> Object;
    fn dlerror() -> *const c_char;
    fn free(memory: Object);
}

// Declares a struct with one field for each function, which open() fills.
macro_rules! library {
    ($($name:ident: fn($($argument:ty),*);)*) => {
        struct Nixl { $($name: unsafe extern "C" fn($($argument),*) -> Status,)* is_stub: unsafe extern "C" fn() -> bool }
        impl Nixl {
            unsafe fn open(library: Object) -> Nixl {
                Nixl {
                    $($name: transmute(symbol(library, stringify!($name))),)*
                    is_stub: transmute(symbol(library, "is_stub")),
                }
            }
        }
    };
}
library! {
    create_agent: fn(*const c_char, *mut Object);
    destroy_agent: fn(Object);
    create_params: fn(*mut Object);
    destroy_params: fn(Object);
    create_backend: fn(Object, *const c_char, Object, *mut Object);
    destroy_backend: fn(Object);
    create_reg_dlist: fn(c_int, *mut Object);
    reg_dlist_add_desc: fn(Object, usize, usize, u64, *const c_void, usize);
    destroy_reg_dlist: fn(Object);
    register_mem: fn(Object, Object, Object);
    get_local_md: fn(Object, *mut Object, *mut usize);
    get_local_partial_md: fn(Object, Object, *mut Object, *mut usize, Object);
    load_remote_md: fn(Object, Object, usize, *mut *mut c_char);
    check_remote_md: fn(Object, *const c_char, Object);
    create_xfer_dlist: fn(c_int, *mut Object);
    xfer_dlist_add_desc: fn(Object, usize, usize, u64);
    destroy_xfer_dlist: fn(Object);
    create_xfer_req: fn(Object, c_int, Object, Object, *const c_char, *mut Object, Object);
    prep_xfer_dlist: fn(Object, *const c_char, Object, *mut Object, Object);
    release_xfer_dlist_handle: fn(Object, Object);
    make_xfer_req: fn(Object, c_int, Object, *const c_int, usize, Object, *const c_int, usize, *mut Object, Object);
    post_xfer_req: fn(Object, Object, Object);
    get_xfer_status: fn(Object, Object);
    release_xfer_req: fn(Object, Object);
    destroy_xfer_req: fn(Object);
    create_opt_args: fn(*mut Object);
    opt_args_set_notif_msg: fn(Object, *const c_void, usize);
    opt_args_set_has_notif: fn(Object, bool);
    destroy_opt_args: fn(Object);
    create_notif_map: fn(*mut Object);
    get_notifs: fn(Object, Object, Object);
    notif_map_get_notifs_size: fn(Object, *const c_char, *mut usize);
    notif_map_get_notif: fn(Object, *const c_char, usize, *mut *const c_void, *mut usize);
    destroy_notif_map: fn(Object);
}

unsafe fn symbol(library: Object, name: &str) -> Object {
    let name = CString::new(format!("nixl_capi_{name}")).unwrap();
    let found = dlsym(library, name.as_ptr());
    assert!(!found.is_null(), "there is no {name:?}");
    found
}

fn text(with_nul: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(with_nul.as_bytes()).unwrap()
}

fn ok(status: Status) {
    assert_eq!(status, SUCCESS);
}

impl Nixl {
    unsafe fn made(&self, make: impl FnOnce(*mut Object) -> Status) -> Object {
        let mut object = null_mut();
        ok(make(&mut object));
        object
    }

    unsafe fn agent(&self, name: &CStr) -> Object {
        let agent = self.made(|to| (self.create_agent)(name.as_ptr(), to));
        let params = self.made(|to| (self.create_params)(to));
        let backend = self.made(|to| (self.create_backend)(agent, text("UCX\0").as_ptr(), params, to));
        ok((self.destroy_params)(params));
        ok((self.destroy_backend)(backend));
        agent
    }

    unsafe fn registration(&self, memory: &[u8]) -> Object {
        let list = self.made(|to| (self.create_reg_dlist)(DRAM, to));
        let address = memory.as_ptr() as usize;
        ok((self.reg_dlist_add_desc)(list, address, memory.len(), 0, null(), 0));
        list
    }

    unsafe fn register(&self, agent: Object, memory: &[u8]) {
        let list = self.registration(memory);
        ok((self.register_mem)(agent, list, null_mut()));
        ok((self.destroy_reg_dlist)(list));
    }

    unsafe fn blocks(&self, memory: &[u8], bytes: usize) -> Object {
        let list = self.made(|to| (self.create_xfer_dlist)(DRAM, to));
        for block in memory.chunks(bytes) {
            ok((self.xfer_dlist_add_desc)(list, block.as_ptr() as usize, bytes, 0));
        }
        list
    }

    unsafe fn load(&self, agent: Object, blob: Object, length: usize) {
        let mut name = null_mut();
        ok((self.load_remote_md)(agent, blob, length, &mut name));
        free(name as Object);
        free(blob);
    }

    unsafe fn run(&self, agent: Object, request: Object) {
        let until = Instant::now() + Duration::from_secs(20);
        let mut status = (self.post_xfer_req)(agent, request, null_mut());
        while status == IN_PROGRESS {
            assert!(Instant::now() < until);
            status = (self.get_xfer_status)(agent, request);
        }
        ok(status);
        ok((self.release_xfer_req)(agent, request));
        ok((self.destroy_xfer_req)(request));
    }

    unsafe fn copy(&self, agent: Object, op: c_int, here: &[u8], there: &[u8], remote: &CStr, note: Object) {
        let (local, far) = (self.blocks(here, here.len()), self.blocks(there, there.len()));
        let request = self.made(|to| {
            (self.create_xfer_req)(agent, op, local, far, remote.as_ptr(), to, note)
        });
        ok((self.destroy_xfer_dlist)(local));
        ok((self.destroy_xfer_dlist)(far));
        self.run(agent, request);
    }

    unsafe fn note(&self, message: &[u8]) -> Object {
        let options = self.made(|to| (self.create_opt_args)(to));
        ok((self.opt_args_set_has_notif)(options, true));
        ok((self.opt_args_set_notif_msg)(options, message.as_ptr() as *const c_void, message.len()));
        options
    }

    unsafe fn expect_note(&self, agent: Object, from: &CStr, message: &[u8]) {
        let until = Instant::now() + Duration::from_secs(20);
        let map = self.made(|to| (self.create_notif_map)(to));
        let (mut count, mut bytes, mut length) = (0, null(), 0);
        while (self.notif_map_get_notifs_size)(map, from.as_ptr(), &mut count) != SUCCESS {
            assert!(Instant::now() < until);
            ok((self.get_notifs)(agent, map, null_mut()));
        }
        ok((self.notif_map_get_notif)(map, from.as_ptr(), 0, &mut bytes, &mut length));
        assert_eq!(std::slice::from_raw_parts(bytes as *const u8, length), message);
        ok((self.destroy_notif_map)(map));
    }
}

fn main() {
    unsafe {
        const RTLD_NOW: c_int = 2;
        let library = dlopen(text("libnixl_capi.so\0").as_ptr(), RTLD_NOW);
        assert!(!library.is_null(), "{:?}", CStr::from_ptr(dlerror()));
        let nixl = Nixl::open(library);
        assert!(!(nixl.is_stub)());
        let (one, other) = (text("one\0"), text("other\0"));
        let (initiator, target) = (nixl.agent(one), nixl.agent(other));
        let mut here = vec![0u8; BLOCK * BLOCKS];
        let there: Vec<u8> = (0..BLOCK * BLOCKS).map(|i| (i / BLOCK + 1) as u8).collect();
        let late = vec![9u8; BLOCK];
        nixl.register(initiator, &here);
        nixl.register(target, &there);

        let (mut blob, mut length) = (null_mut(), 0);
        ok((nixl.get_local_md)(target, &mut blob, &mut length));
        nixl.load(initiator, blob, length);
        nixl.copy(initiator, READ, &here, &there, other, null_mut());
        assert_eq!(here, there);

        here.fill(77);
        let note = nixl.note(b"written");
        nixl.copy(initiator, WRITE, &here, &there, other, note);
        ok((nixl.destroy_opt_args)(note));
        nixl.expect_note(target, one, b"written");
        assert!(there.iter().all(|byte| std::ptr::read_volatile(byte) == 77));

        let (local, far) = (nixl.blocks(&here, BLOCK), nixl.blocks(&there, BLOCK));
        let mine = nixl.made(|to| (nixl.prep_xfer_dlist)(initiator, text("\0").as_ptr(), local, to, null_mut()));
        let theirs = nixl.made(|to| (nixl.prep_xfer_dlist)(initiator, other.as_ptr(), far, to, null_mut()));
        here[3 * BLOCK] = 3;
        let (from, into) = ([3, 4], [0, 7]);
        let request = nixl.made(|to| {
            (nixl.make_xfer_req)(initiator, WRITE, mine, from.as_ptr(), 2, theirs, into.as_ptr(), 2, to, null_mut())
        });
        nixl.run(initiator, request);
        assert_eq!(std::ptr::read_volatile(&there[0]), 3);
        ok((nixl.destroy_xfer_dlist)(local));
        ok((nixl.destroy_xfer_dlist)(far));
        ok((nixl.release_xfer_dlist_handle)(initiator, mine));

        let part = nixl.blocks(&late, BLOCK);
        nixl.register(target, &late);
        assert_eq!((nixl.check_remote_md)(initiator, other.as_ptr(), part), NOT_FOUND);
        let list = nixl.registration(&late);
        ok((nixl.get_local_partial_md)(target, list, &mut blob, &mut length, null_mut()));
        ok((nixl.destroy_reg_dlist)(list));
        nixl.load(initiator, blob, length);
        ok((nixl.check_remote_md)(initiator, other.as_ptr(), part));
        ok((nixl.destroy_xfer_dlist)(part));
        nixl.copy(initiator, READ, &here[..BLOCK], &late, other, null_mut());
        assert!(here[..BLOCK].iter().all(|byte| std::ptr::read_volatile(byte) == 9));

        ok((nixl.destroy_agent)(target));
        ok((nixl.destroy_agent)(initiator));
        ok((nixl.release_xfer_dlist_handle)(initiator, theirs)); // the agent is gone
    }
    println!("a program in Rust moved its blocks over Viaduct");
}
