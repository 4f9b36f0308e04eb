//! Actions with the rights of the user that a process runs as.

use std::fs;
use std::io;
use std::thread;

use rustix::fs::{Gid, Uid};
use rustix::process::{getegid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// The user and groups that a process runs as. The ids are those of our own user namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct User {
    pub(super) uid: Uid,
    pub(super) gid: Gid,
    /// Supplementary groups.
    pub(super) groups: Vec<Gid>,
}

impl User {
    /// True if this thread already runs as this user. HotSpot compares both the user id and the group id of a client
    /// with its own.
    fn is_us(&self) -> bool {
        self.uid == geteuid() && self.gid == getegid()
    }

    /// True if heapdiff may inspect the processes of this user.
    pub(super) fn is_inspectable(&self) -> bool {
        geteuid().is_root() || self.uid == geteuid()
    }

    /// Runs `work` with the rights of this user only.
    ///
    /// On Linux, credentials belong to threads. `work` therefore runs on a new thread, which takes the user's
    /// credentials and ends with them. So nothing has to be restored, and other threads are not affected. Changing the
    /// user id also drops the effective capabilities.
    pub(super) fn run_as<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        if self.is_us() {
            return Ok(work());
        }
        thread::scope(|scope| {
            let acting = scope.spawn(|| {
                if geteuid().is_root() {
                    set_thread_groups(&self.groups)?;
                }
                set_thread_res_gid(None, self.gid, None)?;
                set_thread_res_uid(None, self.uid, None)?;
                Ok(work())
            });
            acting
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("an internal thread failed")))
        })
    }

    /// Runs `work`, which creates a file or folder, with the rights of this user. If root may not switch to this user,
    /// `work` runs as root.
    ///
    /// The reason for using the rights of this user: a file system that belongs to a user namespace rejects users that
    /// have no id in that namespace. It rejects even root.
    pub(super) fn create_as<T: Send>(
        &self,
        work: impl Fn() -> io::Result<T> + Sync,
    ) -> io::Result<T> {
        match self.run_as(&work) {
            Err(_) if geteuid().is_root() => work(),
            made => made?,
        }
    }

    /// Returns the name of the user, or the id if it has no name here.
    pub(super) fn name(&self) -> String {
        Self::name_of(self.uid.as_raw())
    }

    /// Returns the name of the user with this id, or the id if it has no name.
    pub(super) fn name_of(uid: u32) -> String {
        let uid = uid.to_string();
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let name = accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)? == uid).then(|| name.to_owned())
        });
        name.unwrap_or_else(|| format!("with the id {uid}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_threads_keep_their_user() {
        let us = (geteuid(), getegid());
        let other = User {
            uid: Uid::from_raw(65_534),
            gid: Gid::from_raw(65_534),
            groups: Vec::new(),
        };
        let seen = other.run_as(|| (geteuid(), getegid()));
        match us.0.is_root() {
            true => assert_eq!(seen.unwrap(), (other.uid, other.gid)),
            // Only root may become another user.
            false => assert!(seen.is_err() || us.0 == other.uid),
        }
        assert_eq!((geteuid(), getegid()), us);
    }
}
