// Makes HTTP calls with one of several libraries, so that riprap audit can watch what they do:
//
//     node client.js LIBRARY CONFIGURATION METHOD URL BODY KEY TOKEN CALLS
//
// CONFIGURATION is default or docs. METHOD and what follows URL may be empty or left out: a GET, no body, no Idempotency-Key, no
// Authorization, one call. The exit status is 0 if every answer was a 2xx, 1 if not, 2 if the arguments make no sense.

import process from 'node:process';

const [library, configuration, method, url, body = '', key = '', token = '', calls = ''] = process.argv.slice(2);

// Each configuration gives a function that makes one call and returns the status of its answer, whose body it has read. Those
// named docs set what the library's documentation sets where it shows retries: internal/peers/audits/peers.go names the pages.
const libraries = {
	fetch: {
		default: async () => async request => {
			const answer = await fetch(url, request);
			await answer.arrayBuffer();
			return answer.status;
		},
	},
	got: {
		default: async () => gotWith({}),
		docs: async () => gotWith({retry: {limit: 5}, timeout: {request: 10000}}),
	},
	axios: {
		default: async () => axiosWith({}),
		docs: async () => axiosWith({retryDelay: (await import('axios-retry')).default.exponentialDelay}),
	},
};

async function gotWith(options) {
	const {default: got} = await import('got');
	const client = got.extend(options);
	return async request => (await client(url, request)).statusCode;
}

async function axiosWith(options) {
	const {default: axios} = await import('axios');
	const {default: axiosRetry} = await import('axios-retry');
	axiosRetry(axios, options);
	return async ({method, headers, body}) =>
		(await axios({url, method, headers, data: body, responseType: 'text'})).status;
}

function usage(problem) {
	console.error(`client.js: ${problem}`);
	process.exit(2);
}

const configured = libraries[library]?.[configuration];
if (!url) usage('LIBRARY CONFIGURATION METHOD URL BODY KEY TOKEN CALLS');
if (!configured) usage(`no library ${library} with a configuration ${configuration}`);

const request = {method: method || 'GET', headers: {}};
if (body) {
	request.body = body;
	request.headers['Content-Type'] = 'text/plain';
}
if (key) request.headers['Idempotency-Key'] = key;
if (token) request.headers.Authorization = `Bearer ${token}`;

const send = await configured();

async function work() {
	try {
		const status = await send({...request, headers: {...request.headers}});
		if (status < 200 || status > 299) throw new Error(`answered ${status}`);
	} catch (error) {
		console.error(error.message);
		process.exitCode = 1;
	}
}

await Promise.all(Array.from({length: Number(calls || 1)}, work));
