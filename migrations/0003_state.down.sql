DROP TABLE commands;
DROP TABLE signoffs;
DROP TABLE remarks;
DROP TABLE pull_requests;
DROP TABLE repositories;
