DROP TABLE rejected_requests;
DROP TABLE deliveries;
