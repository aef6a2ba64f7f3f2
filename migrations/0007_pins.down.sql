DROP TABLE heads;
DROP TABLE signoff_pins;
