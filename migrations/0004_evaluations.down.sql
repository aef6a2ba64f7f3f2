DROP TABLE evaluations;
DROP TABLE blobs;
DROP FUNCTION countersign_append_only();
