// Reads the data that is embedded in the page.

const report = JSON.parse(byId("report").textContent);
const sentences = JSON.parse(byId("sentences").textContent);
const flameData = JSON.parse(byId("flame").textContent);
