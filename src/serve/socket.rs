//! The Unix socket: who may connect, and what a killed process left in its place.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::Error;

/// Who runs the service and its group may ask; the directory says who else.
const MODE: u32 = 0o660;

/// Listens on a socket. One that nobody answers on any more is replaced, and nothing else is ever removed.
pub async fn bind(path: &Path) -> Result<UnixListener, Error> {
    let failed = |error| Error::Io { place: path.display().to_string(), error };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => return Err(Error::NoSocket(path.to_owned())),
        Ok(_) => match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(failed(error)),
            Ok(_) => return Err(Error::Taken(path.to_owned())),
        },
    }
    // Under another name first: nobody may connect before the mode is set, or finds no socket between two.
    let young = young(path);
    match fs::symlink_metadata(&young) {
        // Whoever made it was killed between the two steps.
        Ok(found) if found.file_type().is_socket() => fs::remove_file(&young).map_err(failed)?,
        Ok(_) => return Err(Error::NoSocket(young)),
        Err(_) => {}
    }
    let listener = UnixListener::bind(&young).map_err(failed)?;
    fs::set_permissions(&young, fs::Permissions::from_mode(MODE)).map_err(failed)?;
    fs::rename(&young, path).map_err(failed)?;
    Ok(listener)
}

fn young(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}
