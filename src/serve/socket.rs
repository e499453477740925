//! The Unix socket: who may connect, and what a killed process left in its place.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::ServeError;

/// The mode of the socket: the service's user and its group may ask; the directory decides about
/// others.
const SOCKET_MODE: u32 = 0o660;

/// The longest path of a socket, in bytes (unix(7)).
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// The suffix of the name of one that nobody may connect to yet.
const NEW_SOCKET_SUFFIX: &[u8] = b".new";

/// Listens on a socket. One that nobody answers on any more is replaced, and nothing else is ever
/// removed.
pub(crate) async fn bind(path: &Path) -> Result<UnixListener, ServeError> {
    let failed = |error| ServeError::Io { endpoint: path.display().to_string(), error };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => return Err(ServeError::NoSocket(path.to_owned())),
        Ok(_) => match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(failed(error)),
            Ok(_) => return Err(ServeError::SocketInUse(path.to_owned())),
        },
    }
    make_folder(path).map_err(failed)?;
    // Under another name first: nobody may connect before the mode is set, or finds no socket
    // between two.
    let young = temporary_name(path);
    match fs::symlink_metadata(&young) {
        // A former process was killed between the two steps.
        Ok(found) if found.file_type().is_socket() => fs::remove_file(&young).map_err(failed)?,
        Ok(_) => return Err(ServeError::NoSocket(young)),
        Err(_) => {}
    }
    let listener = UnixListener::bind(&young).map_err(failed)?;
    fs::set_permissions(&young, fs::Permissions::from_mode(SOCKET_MODE)).map_err(failed)?;
    fs::rename(&young, path).map_err(failed)?;
    Ok(listener)
}

/// Makes the folder of a socket for its owner alone, where only that one level is missing.
fn make_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Returns a name beside it, for the moment before it is complete. Where nothing can be added, as
/// the path needs all the room that there is, its last character gives way.
fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().as_bytes().to_owned();
    if name.len() + NEW_SOCKET_SUFFIX.len() <= MAX_SOCKET_PATH_BYTES {
        name.extend(NEW_SOCKET_SUFFIX);
    } else if let Some(last) = name.iter().rposition(|byte| byte & 0xC0 != 0x80) {
        let mark = if name.get(last..) == Some(b"~") { b'-' } else { b'~' };
        name.truncate(last);
        name.push(mark);
    }
    OsString::from_vec(name).into()
}
