"""Keeping runs: a journal in one SQLite file, append only, that survives a kill."""

from benchrigor.storage.journal import Journal as Journal
from benchrigor.storage.journal import as_store as as_store
from benchrigor.storage.journal import default_path as default_path
from benchrigor.storage.user_settings import data_folder as data_folder
