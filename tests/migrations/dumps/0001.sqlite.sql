BEGIN TRANSACTION;
CREATE TABLE adk_memory_embedding (
	scope_id INTEGER NOT NULL, 
	model_id INTEGER NOT NULL, 
	entry_id INTEGER NOT NULL, 
	vector BLOB NOT NULL, 
	CONSTRAINT adk_memory_embedding_pk PRIMARY KEY (scope_id, model_id, entry_id)
);
INSERT INTO "adk_memory_embedding" VALUES(1,1,1,X'B037203520352035203520312035B037');
INSERT INTO "adk_memory_embedding" VALUES(1,1,2,X'B037203520352035203520312035B037');
INSERT INTO "adk_memory_embedding" VALUES(1,1,3,X'B037203520352035203520312035B037');
INSERT INTO "adk_memory_embedding" VALUES(1,1,4,X'B037203520352035203520312035B037');
INSERT INTO "adk_memory_embedding" VALUES(1,1,5,X'B037203520352035203520312035B037');
INSERT INTO "adk_memory_embedding" VALUES(1,1,6,X'B037203520352035203520312035B037');
INSERT INTO "adk_memory_embedding" VALUES(3,1,7,X'FF38FF34FF30FF34FF34FF34FF34FF34');
INSERT INTO "adk_memory_embedding" VALUES(3,1,8,X'FF38FF34FF30FF34FF34FF34FF34FF34');
INSERT INTO "adk_memory_embedding" VALUES(3,1,9,X'FF38FF34FF30FF34FF34FF34FF34FF34');
INSERT INTO "adk_memory_embedding" VALUES(3,1,10,X'FF38FF34FF30FF34FF34FF34FF34FF34');
INSERT INTO "adk_memory_embedding" VALUES(2,1,11,X'89380C320C320C360C360C320C360C36');
INSERT INTO "adk_memory_embedding" VALUES(2,1,12,X'89380C320C320C360C360C320C360C36');
INSERT INTO "adk_memory_embedding" VALUES(2,1,13,X'89380C320C320C360C360C320C360C36');
INSERT INTO "adk_memory_embedding" VALUES(1,1,14,X'D338D3380000D33400000000D334D334');
INSERT INTO "adk_memory_embedding" VALUES(4,1,15,X'C538C530C5302837C534C530C5342837');
INSERT INTO "adk_memory_embedding" VALUES(4,1,16,X'C538C530C5302837C534C530C5342837');
INSERT INTO "adk_memory_embedding" VALUES(4,1,17,X'C538C530C5302837C534C530C5342837');
INSERT INTO "adk_memory_embedding" VALUES(4,1,18,X'C538C530C5302837C534C530C5342837');
INSERT INTO "adk_memory_embedding" VALUES(4,1,19,X'C538C530C5302837C534C530C5342837');
CREATE TABLE adk_memory_embedding_model (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name TEXT NOT NULL, 
	dimensions INTEGER NOT NULL, 
	CONSTRAINT adk_memory_embedding_model_name_key UNIQUE (name)
);
INSERT INTO "adk_memory_embedding_model" VALUES(1,'letters',8);
CREATE TABLE adk_memory_entry (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	scope_id INTEGER NOT NULL, 
	session_key TEXT NOT NULL, 
	entry_key TEXT NOT NULL, 
	position INTEGER NOT NULL, 
	author TEXT NOT NULL, 
	timestamp BIGINT NOT NULL, 
	content JSON NOT NULL, 
	text TEXT NOT NULL, 
	metadata JSON NOT NULL, 
	term_count INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT, 
	CONSTRAINT adk_memory_entry_scope_id_fk FOREIGN KEY(scope_id) REFERENCES adk_memory_scope (id), 
	CONSTRAINT adk_memory_entry_scope_id_entry_key_session_key_key UNIQUE (scope_id, entry_key, session_key)
);
INSERT INTO "adk_memory_entry" VALUES(1,1,'monday','kitchen-0',1,'Ana',1767258000000000,'{"role":"user","parts":[{"text":"Turn 0 about the kitchen: walls and windows"},{"data":{"turn":0}}]}','Turn 0 about the kitchen: walls and windows','{"turn":0,"topic":"kitchen"}',8,1796062577084317,32472176400000000);
INSERT INTO "adk_memory_entry" VALUES(2,1,'monday','kitchen-1',2,'assistant',1767258060000001,'{"role":"user","parts":[{"text":"Turn 1 about the kitchen: walls and windows"},{"data":{"turn":1}}]}','Turn 1 about the kitchen: walls and windows','{"turn":1,"topic":"kitchen"}',8,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(3,1,'monday','kitchen-2',3,'Ana',1767258120000002,'{"role":"user","parts":[{"text":"Turn 2 about the kitchen: walls and windows"},{"data":{"turn":2}}]}','Turn 2 about the kitchen: walls and windows','{"turn":2,"topic":"kitchen"}',8,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(4,1,'monday','kitchen-3',4,'assistant',1767258180000003,'{"role":"user","parts":[{"text":"Turn 3 about the kitchen: walls and windows"},{"data":{"turn":3}}]}','Turn 3 about the kitchen: walls and windows','{"turn":3,"topic":"kitchen"}',8,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(5,1,'monday','kitchen-4',5,'Ana',1767258240000004,'{"role":"user","parts":[{"text":"Turn 4 about the kitchen: walls and windows"},{"data":{"turn":4}}]}','Turn 4 about the kitchen: walls and windows','{"turn":4,"topic":"kitchen"}',8,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(6,1,'monday','kitchen-5',6,'assistant',1767258300000005,'{"role":"user","parts":[{"text":"Turn 5 about the kitchen: walls and windows"},{"data":{"turn":5}}]}','Turn 5 about the kitchen: walls and windows','{"turn":5,"topic":"kitchen"}',8,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(7,3,'monday','garden-0',1,'Ana',1767258000000000,'{"role":"user","parts":[{"text":"Turn 0 about the garden: walls and windows"},{"data":{"turn":0}}]}','Turn 0 about the garden: walls and windows','{"turn":0,"topic":"garden"}',8,1796062577084317,32472176400000000);
INSERT INTO "adk_memory_entry" VALUES(8,3,'monday','garden-1',2,'assistant',1767258060000001,'{"role":"user","parts":[{"text":"Turn 1 about the garden: walls and windows"},{"data":{"turn":1}}]}','Turn 1 about the garden: walls and windows','{"turn":1,"topic":"garden"}',8,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(9,3,'monday','garden-2',3,'Ana',1767258120000002,'{"role":"user","parts":[{"text":"Turn 2 about the garden: walls and windows"},{"data":{"turn":2}}]}','Turn 2 about the garden: walls and windows','{"turn":2,"topic":"garden"}',8,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(10,3,'monday','garden-3',4,'assistant',1767258180000003,'{"role":"user","parts":[{"text":"Turn 3 about the garden: walls and windows"},{"data":{"turn":3}}]}','Turn 3 about the garden: walls and windows','{"turn":3,"topic":"garden"}',8,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(11,2,'tuesday','康景-0',1,'Ana',1767258000000000,'{"role":"user","parts":[{"text":"Turn 0 about the 康景: walls and windows"},{"data":{"turn":0}}]}','Turn 0 about the 康景: walls and windows','{"turn":0,"topic":"康景"}',10,1796062577084317,32472176400000000);
INSERT INTO "adk_memory_entry" VALUES(12,2,'tuesday','康景-1',2,'assistant',1767258060000001,'{"role":"user","parts":[{"text":"Turn 1 about the 康景: walls and windows"},{"data":{"turn":1}}]}','Turn 1 about the 康景: walls and windows','{"turn":1,"topic":"康景"}',10,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(13,2,'tuesday','康景-2',3,'Ana',1767258120000002,'{"role":"user","parts":[{"text":"Turn 2 about the 康景: walls and windows"},{"data":{"turn":2}}]}','Turn 2 about the 康景: walls and windows','{"turn":2,"topic":"康景"}',10,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(14,1,'','opening',0,'Ana',1767258000000000,'{"role":"user","parts":[{"text":"The café opens at 9 🍵"}]}','The café opens at 9 🍵','{}',6,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(15,4,'monday','boat-0',1,'Ana',1767258000000000,'{"role":"user","parts":[{"text":"Turn 0 about the boat: walls and windows"},{"data":{"turn":0}}]}','Turn 0 about the boat: walls and windows','{"turn":0,"topic":"boat"}',8,1796062577084317,32472176400000000);
INSERT INTO "adk_memory_entry" VALUES(16,4,'monday','boat-1',2,'assistant',1767258060000001,'{"role":"user","parts":[{"text":"Turn 1 about the boat: walls and windows"},{"data":{"turn":1}}]}','Turn 1 about the boat: walls and windows','{"turn":1,"topic":"boat"}',8,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(17,4,'monday','boat-2',3,'Ana',1767258120000002,'{"role":"user","parts":[{"text":"Turn 2 about the boat: walls and windows"},{"data":{"turn":2}}]}','Turn 2 about the boat: walls and windows','{"turn":2,"topic":"boat"}',8,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(18,4,'monday','boat-3',4,'assistant',1767258180000003,'{"role":"user","parts":[{"text":"Turn 3 about the boat: walls and windows"},{"data":{"turn":3}}]}','Turn 3 about the boat: walls and windows','{"turn":3,"topic":"boat"}',8,1796062577084317,NULL);
INSERT INTO "adk_memory_entry" VALUES(19,4,'monday','boat-4',5,'Ana',1767258240000004,'{"role":"user","parts":[{"text":"Turn 4 about the boat: walls and windows"},{"data":{"turn":4}}]}','Turn 4 about the boat: walls and windows','{"turn":4,"topic":"boat"}',8,1796062577084317,NULL);
CREATE TABLE adk_memory_meta (
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT adk_memory_meta_pk PRIMARY KEY ("key")
);
INSERT INTO "adk_memory_meta" VALUES('analyser','1');
CREATE TABLE adk_memory_schema_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT adk_memory_schema_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "adk_memory_schema_version" VALUES('0001');
CREATE TABLE adk_memory_scope (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	fingerprint TEXT NOT NULL, 
	app_name TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	project_key TEXT NOT NULL, 
	entry_count BIGINT NOT NULL, 
	term_count BIGINT NOT NULL, 
	version BIGINT NOT NULL, 
	CONSTRAINT adk_memory_scope_fingerprint_key UNIQUE (fingerprint)
);
INSERT INTO "adk_memory_scope" VALUES(1,'025b635900c4942a293a85b68bb36b7a7c5ae958c5a590bbd28687026d847d13','dumped','ana','',7,54,1);
INSERT INTO "adk_memory_scope" VALUES(2,'0bcf0ac3cd372c34a5d849525e2e2541531a47646ad2b279d736e96990342717','dumped','ana','B',3,30,1);
INSERT INTO "adk_memory_scope" VALUES(3,'27b02f4f50ea04b3eaad13d31b5e783694b6d37fa373945894f7e51a724e4c6e','dumped','ana','A',4,32,1);
INSERT INTO "adk_memory_scope" VALUES(4,'e42d466383373040e3b3c743e8c8fe42195aa2e863eef097ee851c85f6e6df5a','dumped','o''Brien%_','',5,40,1);
PRAGMA writable_schema=ON;
INSERT INTO sqlite_master(type,name,tbl_name,rootpage,sql)VALUES('table','adk_memory_search_entry','adk_memory_search_entry',0,'CREATE VIRTUAL TABLE adk_memory_search_entry USING fts5(terms, tokenize="ascii tokenchars ''_''")');
CREATE TABLE 'adk_memory_search_entry_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO "adk_memory_search_entry_config" VALUES('version',4);
CREATE TABLE 'adk_memory_search_entry_content'(id INTEGER PRIMARY KEY, c0);
INSERT INTO "adk_memory_search_entry_content" VALUES(1,'1_turn 1_0 1_about 1_the 1_kitchen 1_wall 1_and 1_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(2,'1_turn 1_1 1_about 1_the 1_kitchen 1_wall 1_and 1_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(3,'1_turn 1_2 1_about 1_the 1_kitchen 1_wall 1_and 1_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(4,'1_turn 1_3 1_about 1_the 1_kitchen 1_wall 1_and 1_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(5,'1_turn 1_4 1_about 1_the 1_kitchen 1_wall 1_and 1_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(6,'1_turn 1_5 1_about 1_the 1_kitchen 1_wall 1_and 1_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(7,'3_turn 3_0 3_about 3_the 3_garden 3_wall 3_and 3_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(8,'3_turn 3_1 3_about 3_the 3_garden 3_wall 3_and 3_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(9,'3_turn 3_2 3_about 3_the 3_garden 3_wall 3_and 3_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(10,'3_turn 3_3 3_about 3_the 3_garden 3_wall 3_and 3_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(11,'2_turn 2_0 2_about 2_the 2_康 2_康景 2_景 2_wall 2_and 2_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(12,'2_turn 2_1 2_about 2_the 2_康 2_康景 2_景 2_wall 2_and 2_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(13,'2_turn 2_2 2_about 2_the 2_康 2_康景 2_景 2_wall 2_and 2_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(14,'1_the 1_cafe 1_open 1_at 1_9 1_🍵');
INSERT INTO "adk_memory_search_entry_content" VALUES(15,'4_turn 4_0 4_about 4_the 4_boat 4_wall 4_and 4_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(16,'4_turn 4_1 4_about 4_the 4_boat 4_wall 4_and 4_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(17,'4_turn 4_2 4_about 4_the 4_boat 4_wall 4_and 4_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(18,'4_turn 4_3 4_about 4_the 4_boat 4_wall 4_and 4_window');
INSERT INTO "adk_memory_search_entry_content" VALUES(19,'4_turn 4_4 4_about 4_the 4_boat 4_wall 4_and 4_window');
CREATE TABLE 'adk_memory_search_entry_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO "adk_memory_search_entry_data" VALUES(1,X'13811C');
INSERT INTO "adk_memory_search_entry_data" VALUES(10,X'000000000101010001010101');
INSERT INTO "adk_memory_search_entry_data" VALUES(137438953473,X'000002DC0430315F300102030301310202030301320302030301330402030301340502030301350602030301390E0206030561626F757401020401020401020401020401020401020404026E640102080102080102080102080102080102080401740E02050304636166650E020303076B69746368656E01020601020601020601020601020601020603046F70656E0E02040303746865010205010205010205010205010205010205080202040375726E010202010202010202010202010202010202030477616C6C0102070102070102070102070102070102070405696E646F770102090102090102090102090102090102090304F09F8DB50E02070103325F300B02030301310C02030301320D0203030561626F75740B020401020401020404026E640B020A01020A01020A03037468650B0205010205010205040375726E0B0202010202010202030477616C6C0B02090102090102090405696E646F770B020B01020B01020B0303E5BAB70B02060102060102060603E699AF0B02070102070102070303E699AF0B02080102080102080103335F300702030301310802030301320902030301330A0203030561626F757407020401020401020401020404026E64070208010208010208010208030667617264656E0702060102060102060102060303746865070205010205010205010205040375726E070202010202010202010202030477616C6C0702070102070102070102070405696E646F770702090102090102090102090103345F300F0203030131100203030132110203030133120203030134130203030561626F75740F020401020401020401020401020404026E640F02080102080102080102080102080304626F61740F020601020601020601020601020603037468650F0205010205010205010205010205040375726E0F0202010202010202010202010202030477616C6C0F02070102070102070102070102070405696E646F770F02090102090102090102090102090408060606060606191606091B091A17181909080606100D0E0E0F100E0E0E08060606131014111112130806060606161315141415');
CREATE TABLE 'adk_memory_search_entry_docsize'(id INTEGER PRIMARY KEY, sz BLOB);
INSERT INTO "adk_memory_search_entry_docsize" VALUES(1,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(2,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(3,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(4,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(5,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(6,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(7,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(8,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(9,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(10,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(11,X'0A');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(12,X'0A');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(13,X'0A');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(14,X'06');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(15,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(16,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(17,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(18,X'08');
INSERT INTO "adk_memory_search_entry_docsize" VALUES(19,X'08');
CREATE TABLE 'adk_memory_search_entry_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
INSERT INTO "adk_memory_search_entry_idx" VALUES(1,X'',2);
INSERT INTO sqlite_master(type,name,tbl_name,rootpage,sql)VALUES('table','adk_memory_search_term','adk_memory_search_term',0,'CREATE VIRTUAL TABLE adk_memory_search_term USING fts5vocab(''adk_memory_search_entry'', ''instance'')');
CREATE INDEX adk_memory_scope_app_name_user_id_idx ON adk_memory_scope (app_name, user_id);
CREATE INDEX adk_memory_entry_scope_id_session_key_position_idx ON adk_memory_entry (scope_id, session_key, position);
CREATE INDEX adk_memory_entry_scope_id_timestamp_id_idx ON adk_memory_entry (scope_id, timestamp, id);
CREATE INDEX adk_memory_entry_scope_id_expires_at_idx ON adk_memory_entry (scope_id, expires_at) WHERE expires_at IS NOT NULL;
PRAGMA writable_schema=OFF;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('adk_memory_embedding_model',1);
INSERT INTO "sqlite_sequence" VALUES('adk_memory_scope',4);
INSERT INTO "sqlite_sequence" VALUES('adk_memory_entry',19);
COMMIT;
