//! The tests of the library, a folder for each subject. They are one program, since each program compiles for itself what is generic.

#[path = "../common/mod.rs"]
mod common;

mod bounded;
mod core;
mod differential;
mod orders;
mod surface;
mod waiting;
mod workers;

use differential::model; // where the fuzz targets have it
