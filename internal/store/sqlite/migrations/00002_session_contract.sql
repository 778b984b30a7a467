-- +goose Up
-- TOOL-10: a session keeps the versions of the tools that it began with. Those
-- from before there were several keep what they had.
ALTER TABLE sessions ADD COLUMN contract TEXT NOT NULL DEFAULT '1.0.0'
    CHECK (contract IN ('1.0.0', '1.1.0', '1.7.0', '1.8.0', '1.9.0'));
