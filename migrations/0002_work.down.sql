DROP TABLE repository_turns;
DROP TABLE work;
